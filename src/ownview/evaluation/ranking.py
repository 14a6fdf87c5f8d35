"""Ranks held-out items among their candidates, in blocks of users that bound memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.base.errors import DataError, TrainingError
from ownview.base.randomness import bits, derive, sort_keys
from ownview.data.interactions import FloatArray, IdArray, IntArray
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.evaluation.metrics import Standing
from ownview.evaluation.protocol import Protocol

NONE = -1
"""In lists of recommended items: an empty place."""

OnUsers = Callable[[int], object]
"""Called now and then with how many users are through."""


class Scorer(Interface):
    """Anything that scores items for users: a federation, a central model, a probe."""

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` [B, C] for `users` [B]; of all items where `items` is None."""


@dataclass(frozen=True, eq=False)
class Ranker:
    """The fixed questions of a run: whom to ask, what is right, against which candidates.

    Args:
        question: of everybody.
        users: [k] users that are asked.
        relevant: the right answers of each of them, k lists.
        sampled: [k, c] candidates besides the one right answer, or None to rank all items.
        hidden: items of every user that are no candidates in full ranking and never recommended.
        ties: the tie rule.
        num_items: size of the universe.
        ids: [n] of all users, for errors.
        device: where scores are made.
        block: users at once.
        others: [m] True for items that are never candidates; None where there are none.
    """

    question: Question
    users: Tensor
    relevant: Ragged
    sampled: Tensor | None
    hidden: Ragged
    ties: str
    num_items: int
    ids: IdArray
    device: torch.device
    block: int
    others: Tensor | None = None

    def rank(self, scorer: Scorer) -> Standing:
        """Rank the right answers."""
        return self._standing(
            [
                self._rank_all(*self._shown(scorer, self.users[part]), part)
                if self.sampled is None
                else self._rank_sampled(scorer, part)
                for part in self._parts()
            ]
        )

    def rank_and_top(self, scorer: Scorer, k: int) -> tuple[Standing, npt.NDArray[np.int64]]:
        """`rank` and `top`; where both look at all items, everybody is scored once for both."""
        if self.sampled is not None:
            return self.rank(scorer), self.top(scorer, k)
        counted, listed = [], []
        for part in self._parts():
            scores, shown = self._shown(scorer, self.users[part])
            listed.append(_best(shown, k))  # before the right answers are shown again
            counted.append(self._rank_all(scores, shown, part))
        return self._standing(counted), _padded(listed, k)[0]

    def _parts(self) -> tuple[Tensor, ...]:
        """Places among `users` that are looked at together."""
        return torch.split(torch.arange(len(self.users), device=self.device), self.block)

    def _standing(self, counted: Sequence[tuple[Tensor, Tensor, Tensor]]) -> Standing:
        better, tied, total = (torch.cat(column).cpu().numpy() for column in zip(*counted, strict=True))
        lengths = self.relevant.lengths.cpu().numpy()
        answers = None if (lengths == 1).all() else lengths
        return Standing(self.users.cpu().numpy(), better, tied, total, self.ties, answers)

    @property
    def met(self) -> IntArray:
        """[k] right answers of each user that are items of the model."""
        owner = torch.repeat_interleave(torch.arange(len(self.users), device=self.device), self.relevant.lengths)
        known = (self.relevant.values < self.num_items).long()
        return (
            torch.zeros(len(self.users), dtype=torch.long, device=self.device).index_add(0, owner, known).cpu().numpy()
        )

    @property
    def answers(self) -> IntArray:
        """[k] right answers of each user."""
        return self.relevant.lengths.cpu().numpy()

    def of(self, chosen: Tensor) -> Ranker:
        """The same questions to some of the users, by place among `users`."""
        lists = [self.relevant.of(int(place)) for place in chosen]
        offsets = torch.cumsum(self.relevant.lengths[chosen], 0)
        relevant = Ragged(torch.cat([offsets.new_zeros(1), offsets]), torch.cat(lists))
        sampled = None if self.sampled is None else self.sampled[chosen]
        return replace(self, users=self.users[chosen], relevant=relevant, sampled=sampled)

    def some(self, most: int | None, seed: int) -> Ranker:
        """The questions of so many users at most, drawn at random; of all where `most` is None."""
        if most is None or len(self.users) <= most:
            return self
        drawn = np.random.default_rng(derive(seed, "probed users")).choice(len(self.users), most, replace=False)
        return self.of(torch.from_numpy(np.sort(drawn)).to(self.device))

    def top(self, scorer: Scorer, k: int) -> npt.NDArray[np.int64]:
        """[users, k] the best items that are not hidden, -1 where there are fewer; ties go to the lower position."""
        return self.best(scorer, k)[0]

    def best(self, scorer: Scorer, k: int, on_users: OnUsers | None = None) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """The same, and [users, k] their scores, minus infinity at empty places; tells how many users have theirs."""
        found, done = [], 0
        for part in torch.split(self.users, self.block):
            found.append(_best(self._shown(scorer, part)[1], k))
            done += len(part)
            if on_users is not None:
                on_users(done)
        return _padded(found, k)

    def _shown(self, scorer: Scorer, users: Tensor) -> tuple[Tensor, Tensor]:
        """Scores [B, m] of all items, and the same with hidden ones at minus infinity."""
        scores = scorer.scores(users, None)
        return scores, self._hide(scores, users)

    def _rank_all(self, scores: Tensor, shown: Tensor, part: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Among all items; right answers are written into `shown`."""
        right, real = self.relevant.padded(part)
        met = real & (right < self.num_items)
        right = torch.where(met, right, 0)
        mine = scores.gather(1, right)
        # A protocol that keeps repeats may hold out an item that is also trained on and hence hidden.
        row = torch.arange(len(part), device=self.device)[:, None].expand_as(right)
        shown[row[met], right[met]] = mine[met]
        better, level = _counts(shown, mine)
        # Items that the model has never met stand behind all others, tied with each other.
        total, unmet = self._candidates(shown, self.users[part]), (real & ~met).sum(1)
        better = torch.where(met, better, total[:, None])
        level = torch.where(met, level, unmet[:, None])
        return better[real], level[real] - 1, total + unmet

    def _rank_sampled(self, scorer: Scorer, part: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert self.sampled is not None
        items = torch.cat([self.relevant.values[part, None], self.sampled[part]], dim=1)
        scores = self._require_numbers(scorer.scores(self.users[part], items), self.users[part])
        mine, others = scores[:, :1], scores[:, 1:]
        total = torch.full_like(part, items.shape[1])
        return (others > mine).sum(1), (others == mine).sum(1), total

    def _hide(self, scores: Tensor, users: Tensor) -> Tensor:
        """Scores of all items with hidden ones at minus infinity."""
        items, real = self.hidden.padded(users)
        row = torch.arange(len(users), device=self.device)[:, None].expand_as(items)
        shown = self._require_numbers(scores, users).clone()
        shown[row[real], items[real]] = -torch.inf
        return shown if self.others is None else shown.masked_fill_(self.others, -torch.inf)

    def _candidates(self, shown: Tensor, users: Tensor) -> Tensor:
        """[B] items that are ranked: all but the different hidden ones that are still at minus infinity."""
        if self.others is not None:
            return torch.isfinite(shown).sum(1)
        items, real = self.hidden.padded(users)
        items = torch.where(real, items, -1).sort(dim=1).values
        again = torch.nn.functional.pad(items[:, 1:] == items[:, :-1], (1, 0))
        away = (items >= 0) & ~again & torch.isinf(shown.gather(1, items.clamp(min=0)))
        return shown.shape[1] - away.sum(1)

    def _require_numbers(self, scores: Tensor, users: Tensor) -> Tensor:
        # A sum is one pass; it is not finite where a score is not, or where finite ones are huge.
        for place in (~torch.isfinite(scores.sum(1))).nonzero()[:, 0].tolist():
            if not bool(torch.isfinite(scores[place]).all()):
                user = self.ids[int(users[place])]
                raise TrainingError(f"scores of user {user} are not finite; nothing can be ranked by them")
        return scores


def rankers(protocol: Protocol, split: Split, seed: int, device: torch.device, memory: int) -> tuple[Ranker, Ranker]:
    """The questions of validation and of test.

    Args:
        protocol: which candidates, which tie rule.
        split: who is asked what.
        seed: of the run; sampled candidates are drawn once from it.
        device: where scores are made.
        memory: bytes a block of scores may take.
    """
    made = []
    for stage, question, here in (
        ("validation", split.validation, split.earlier or split),
        ("test", split.test, split),
    ):
        users = question.users
        if not len(users):
            raise DataError(f"{split.data.name}: no user can be asked for {stage} under protocol {protocol.name}")
        sampled = None
        if protocol.candidates:
            purpose = "candidates" if protocol.same_candidates else f"candidates:{stage}"
            pool = here.known_items() if protocol.candidates_avoid == "known" else question.hidden
            held_out = question.relevant.values.numpy()
            sampled = sample_candidates(derive(seed, purpose), users, held_out, pool, here, protocol.candidates)
        lengths = question.relevant.lengths[torch.from_numpy(users)]
        offsets = torch.cat([lengths.new_zeros(1), torch.cumsum(lengths, 0)])
        others = None
        if question.among is not None:
            others = torch.ones(here.num_items, dtype=torch.bool, device=device)
            others[torch.from_numpy(question.among).to(device)] = False
        made.append(
            Ranker(
                question,
                torch.from_numpy(users).to(device),
                Ragged(offsets, question.relevant.values).to(device),
                None if sampled is None else sampled.to(device),
                question.hidden.to(device),
                protocol.ties,
                here.num_items,
                here.users_of(question),
                device,
                max(1, min(4096, memory // (here.num_items * 64))),
                others,
            )
        )
    return made[0], made[1]


def sample_candidates(key: int, users: IntArray, held_out: IntArray, avoid: Ragged, split: Split, count: int) -> Tensor:
    """[k, count] distinct items outside `avoid` and other than the held-out one, uniform, for each user.

    The items with the smallest random numbers are taken: a uniform sample without replacement.
    """
    every = torch.arange(split.num_items)
    parts = []
    for part in torch.split(torch.arange(len(users)), 1024):
        mine = torch.from_numpy(users)[part]
        keys = bits(key, mine[:, None], every) >> 1 & ~0xFFFFFFF | every
        items, real = avoid.padded(mine)
        row = torch.arange(len(mine))[:, None].expand_as(items)
        keys[row[real], items[real]] = 1 << 62
        keys[torch.arange(len(mine)), torch.from_numpy(held_out)[part]] = 1 << 62
        _require_enough(keys, mine, count, split)
        parts.append(sort_keys(keys)[:, :count] & 0xFFFFFFF)
    return torch.cat(parts)


def _require_enough(keys: Tensor, users: Tensor, count: int, split: Split) -> None:
    free = (keys < 1 << 62).sum(1)
    if int(free.min()) < count:
        worst = int(free.argmin())
        raise DataError(
            f"{split.data.name}: user {split.data.users[int(users[worst])]} leaves {int(free[worst])} of "
            f"{split.num_items} items as candidates; expected at least {count}: use a protocol with fewer candidates"
        )


def _padded(best: Sequence[tuple[Tensor, Tensor]], k: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """[users, k] items of highest scores, `NONE` at empty places, and their scores, minus infinity there."""
    scores = torch.cat([values for values, _ in best])
    found = torch.where(torch.isfinite(scores), torch.cat([items for _, items in best]), NONE)
    wide = (0, k - found.shape[1])
    padded = torch.nn.functional.pad(found, wide, value=NONE).cpu().numpy()
    return padded, torch.nn.functional.pad(scores, wide, value=-torch.inf).double().cpu().numpy()


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """[B, k] the highest of the scores [B, m], highest first, and their positions; k is m at most.

    Of equal scores the lower position comes first. The k best lie in the k sets of items with the highest maxima,
    unless a set that is left out has as high a score as the k-th best: then all scores are looked at.
    """
    count, items = scores.shape
    sets = items // _SET
    if sets <= 2 * k:
        return _sorted_best(scores, k)
    whole = scores[:, : sets * _SET].view(count, _SET, sets)  # a set is every sets-th item
    most, chosen = whole.amax(1).topk(k + 1, dim=1)
    places = chosen[:, :k, None] + torch.arange(0, sets * _SET, sets, device=scores.device)
    rest = torch.arange(sets * _SET, items, device=scores.device).expand(count, -1)
    places = torch.cat([places.flatten(1), rest], dim=1).sort(dim=1).values
    found = scores.gather(1, places).sort(dim=1, descending=True, stable=True)
    values, best = found.values[:, :k], places.gather(1, found.indices[:, :k])
    doubtful = (values[:, -1] <= most[:, k]).nonzero()[:, 0]
    if len(doubtful):
        values[doubtful], best[doubtful] = _sorted_best(scores[doubtful], k)
    return values, best


_SET = 32
"""Items of whose scores one maximum is taken first."""


def _sorted_best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same, ties broken by position; `topk` promises no order among equals, so it gives the k-th value alone."""
    count, items = scores.shape
    if 4 * k >= items:
        every = scores.sort(dim=1, descending=True, stable=True)
        return every.values[:, :k], every.indices[:, :k]
    last = scores.topk(k, dim=1, sorted=False).values.amin(1, keepdim=True)
    above, level = scores > last, scores == last
    room = k - above.sum(1, keepdim=True)
    chosen = (above | (level & (level.cumsum(1) <= room))).nonzero()[:, 1].reshape(count, k)
    best = scores.gather(1, chosen).sort(dim=1, descending=True, stable=True)
    return best.values, chosen.gather(1, best.indices)


def _counts(scores: Tensor, mine: Tensor) -> tuple[Tensor, Tensor]:
    """[B, R] how many of the scores [B, m] are above, and how many equal to, each of `mine` [B, R]."""
    if mine.shape[1] == 1:
        # Ones are summed as numbers: six times as fast as truth values on a CPU, and exact below 2^24 items.
        ones = torch.empty(scores.shape, dtype=torch.float32, device=scores.device)
        above, equal = (compare(scores, mine, out=ones).sum(1, keepdim=True).long() for compare in (torch.gt, torch.eq))
        return above, equal
    rising = scores.sort(dim=1).values.contiguous()
    above, below = (torch.searchsorted(rising, mine.contiguous(), right=right) for right in (True, False))
    return scores.shape[1] - above, above - below
