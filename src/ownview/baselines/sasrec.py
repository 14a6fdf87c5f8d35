"""SASRec: a causal transformer over every user's items in time order, trained on everybody's data at once.

Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018; with the loss over all items, as Klenitskiy and
Vasilev, "Turning Dross Into Gold Loss: is BERT4Rec really better than SASRec?", RecSys 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.base.randomness import chances
from ownview.baselines.parts.central import Asked, InEpochs, Lessons
from ownview.baselines.parts.central_adam import adam_step, steps_taken, with_memory
from ownview.config.participation import in_turn, rounds_of_a_pass
from ownview.config.settings import setting
from ownview.data.splitting.splits import Split
from ownview.parts.sequences import prefixes
from ownview.parts.sequences.passes import candidates, divergence, every_slope, seen
from ownview.parts.sequences.prefixes import Prefixes
from ownview.parts.sequences.sequence import SequenceSettings, require_order
from ownview.parts.sequences.transformer import Lesson, lesson
from ownview.seam.portable import Attention, Portable
from ownview.seam.roles import RECEIVED
from ownview.seam.training import Params

_CELLS = 2**25
"""Scores that are held at once: bounds memory to about 130 MB a matrix."""

Excludes = Callable[[Tensor], Tensor]
"""Numbers of some positions [n] -> [n, m] which items are no candidates there."""

_AT_WORK = 2**26
"""Numbers that are held between layers at once, where beginnings are many: 270 MB; on a GPU eight times as many."""


@dataclass(frozen=True)
class SASRec(SequenceSettings, InEpochs):
    """score = h . e_i, h a causal transformer's output for a user's items in order; see `parts.sequences.transformer`.

    A batch is some users' sequences; its loss is the mean over their positions. Users, batches, initial values and
    dropout are those of a federation whose clients take turns (`clients=turns:128`), so the two can be held together.
    """

    name: ClassVar[str] = "sasrec"
    title: ClassVar[str] = "SASRec"
    summary: ClassVar[str] = "a causal transformer over everybody's items in time order"
    paper: ClassVar[str] = "Kang and McAuley, ICDM 2018"
    by_history: ClassVar[bool] = True

    batch_size: int = setting(128, "users in a batch", low=1)

    def require(self, split: Split) -> None:
        """Items must have an order."""
        require_order(self.name, split.order)

    def start(self, lessons: Lessons) -> Params:
        """The initial values of a federation of that seed."""
        m = lessons.num_items
        params = self.network.params(m, RECEIVED)
        return with_memory({name: one.drawn(name, m, lessons.seed) for name, one in params.items()})

    def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
        """Adam on the mean loss over the positions of each batch."""
        n, size = lessons.num_users, self.batch_size
        batches = rounds_of_a_pass(n, size)
        total, positions = torch.zeros((), device=lessons.device), torch.zeros((), device=lessons.device)
        for step in range((number - 1) * batches + 1, number * batches + 1):
            users = in_turn(lessons.seed, step, n, size, lessons.device)
            loss, count = self.step(values, lessons, users, step)
            total += loss
            positions += count
        return float(total / positions.clamp(min=1))

    def step(self, values: Params, lessons: Lessons, users: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Move the values by one batch of users; returns the sum of losses and the number of positions."""
        p = {name: values[name].detach().requires_grad_() for name in self.network.names}
        made = self.network.table(p)
        table = made.detach().requires_grad_()  # made once, and what it learns is carried on to the items once
        total, positions = torch.zeros((), device=lessons.device), torch.zeros((), device=lessons.device)
        for some in _of_like_length(users, lessons.timeline.items.lengths_of(users)):
            listed, there = lessons.timeline.items.padded(some)
            luck = chances(lessons.seed, "luck", number, some)
            taught = self._taught(listed, there.to(values["items"].dtype), luck)
            count = taught.real.sum()
            if bool(count > 0):  # some user has two items
                total, positions = total + self._learnt(p, table, taught, luck), positions + count
        if bool(positions > 0):
            if table.grad is not None:
                torch.autograd.backward([made], [table.grad])
            grads = [one.grad / positions for one in p.values() if one.grad is not None]
            adam_step(values, self.network.names, grads, self.rate(steps_taken(values) + 1))
        return total, positions

    def _learnt(self, p: Params, table: Tensor, taught: Lesson | Prefixes, luck: Tensor) -> Tensor:
        """The sum of losses; its gradient is added to that of every parameter and of the table of items' vectors."""
        if self.negatives:
            return self._over_drawn(p, taught, luck)
        if isinstance(taught, Prefixes):
            return self._over_beginnings(p, table, prefixes.flat(taught))
        return self._over_all(p, table, taught, luck)

    def _taught(self, listed: Tensor, mask: Tensor, luck: Tensor) -> Lesson | Prefixes:
        """What the users of a batch are taught by, [B, ...]; the arguments are [B, L], [B, L] and [B]."""
        if not self.prefixes:
            return torch.vmap(lambda rows, real: lesson(rows, real, self.length))(listed, mask)

        def beginnings(rows: Tensor, real: Tensor, chance: Tensor) -> Prefixes:
            return prefixes.prefixes(self.network, rows, real, chance, self.drawn)

        return torch.vmap(beginnings)(listed, mask, luck)

    def _over_drawn(self, p: Params, taught: Lesson | Prefixes, luck: Tensor) -> Tensor:
        """Over drawn items."""

        def loss(taught: Lesson | Prefixes, luck: Tensor) -> Tensor:
            if isinstance(taught, Prefixes):
                return prefixes.loss(self.network, p, taught, luck, self.negatives)
            return self.network.loss(p, taught, luck, self.negatives)

        total = torch.vmap(loss)(taught, luck).sum()
        torch.autograd.backward([total])
        return total.detach()

    def _over_all(self, p: Params, table: Tensor, taught: Lesson, luck: Tensor) -> Tensor:
        """Over all items, which are scored for some positions at a time."""

        def states(taught: Lesson, luck: Tensor) -> tuple[Tensor, Tensor]:
            return self.network.taught(p, table, taught, luck)

        hidden, wanted = torch.vmap(states)(taught, luck)
        real = taught.real > 0
        states_there = hidden.transpose(0, 1)[:, real]
        return self._learnt_over_all(table, states_there, wanted[real].sum(), self._excludes(taught, real, len(table)))

    def _excludes(self, taught: Lesson, real: Tensor, many: int) -> Excludes | None:
        """Which items are no candidates at some of the places [N] that are real [B, W]; None where all are."""
        if not self.exclude_seen:
            return None
        first = torch.vmap(lambda items, there: self.network.firsts(Lesson(items, there), many))(*taught)
        of, place = real.nonzero(as_tuple=True)
        targets = taught.items[:, 1:][real]
        return lambda here: seen(first[of[here]], place[here], targets[here])

    def _over_beginnings(self, p: Params, table: Tensor, taught: Prefixes) -> Tensor:
        """The same of beginnings [S, ...], some of like length at a time."""
        at_work = _AT_WORK if taught.items.device.type == "cpu" else 8 * _AT_WORK
        size = max(1, at_work // self.network.inside(taught.items.shape[1]))
        total = torch.zeros_like(taught.real[0])
        for begin in range(0, len(taught.real), size):
            some = prefixes.some(taught, slice(begin, begin + size))
            hidden, wanted = prefixes.answered(self.network, p, table, some)
            total = total + self._learnt_over_all(table, hidden[None], wanted.sum(), None)
        return total

    def _learnt_over_all(self, table: Tensor, hidden: Tensor, known: Tensor, excludes: Excludes | None) -> Tensor:
        """[] sum of losses over states h; its gradient is added to that of every leaf behind them.

        Args:
            table: [m, d] the vectors E of items, a leaf.
            hidden: [K, N, d] the states of each pass.
            known: [] the sum of the scores of what came next.
            excludes: which items are no candidates; None where all are.
        """
        total, to_hidden, to_table = log_sum_slopes(hidden.detach(), table.detach(), self.r_drop, excludes)
        torch.autograd.backward([hidden, known, table], [to_hidden, -torch.ones_like(known), to_table])
        return total - known.detach()

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] h . e_i after the latest item that is known."""
        parts = []
        for users in torch.split(asked.users, self._at_once):
            listed, there = asked.known.items.padded(users)
            mask = there.to(learned["items"].dtype)
            states = torch.vmap(lambda rows, real: self.network.last(learned, rows, real))(listed, mask)
            parts.append(states @ self.network.table(learned).T)
        return torch.cat(parts)

    def portable(self, learned: Params) -> Portable:
        """The network."""
        return Attention(self.network, {name: learned[name] for name in self.network.names})

    @property
    def _at_once(self) -> int:
        """Users whose attention is worked out side by side."""
        return max(1, _CELLS // (self.length * (self.heads * self.length + 8 * self.embedding_size)))


def _of_like_length(users: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """The users, those together whose sequences [B] are padded to less than twice their length; all on a GPU.

    On a CPU most of a batch would be padding to its longest sequence. A GPU does it side by side, and would wait for
    how many there are of each.
    """
    if users.device.type != "cpu":
        return (users,)
    doublings = lengths.clamp(min=1).double().log2().ceil()
    return tuple(users[doublings == one] for one in torch.unique(doublings))


def log_sum_slopes(
    hidden: Tensor, items: Tensor, r_drop: float = 0.0, excludes: Excludes | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum over positions of log sum exp(h E^T), and its gradients, never writing out all scores at once.

    With s = softmax(h E^T) they are s E and s^T h. Of two passes it is their mean, with what R-Drop adds.

    Args:
        hidden: [K, N, d] h of each pass.
        items: [m, d] E.
        r_drop: its weight; K is 2 with it, else 1.
        excludes: which items are no candidates at some of the N; None where all are.

    Returns:
        [], [K, N, d] and [m, d].
    """
    passes, count, _ = hidden.shape
    total, to_hidden, to_items = hidden.new_zeros(()), torch.empty_like(hidden), torch.zeros_like(items)
    held = len(items) * (4 * passes if r_drop else 1)
    for here in torch.split(torch.arange(count, device=hidden.device), max(1, _CELLS // held)):
        scores = hidden[:, here] @ items.T
        among = candidates(scores, None if excludes is None else excludes(here))
        highest = torch.logsumexp(among, -1)
        total += highest.sum() / passes
        if r_drop:
            softmax = torch.softmax(among, -1)
            total += r_drop / 2 * divergence(scores, softmax).sum()
            slope = every_slope(scores, softmax, r_drop)
        else:
            slope = among.sub_(highest[..., None]).exp_()  # in place: what is new memory is slow
        to_hidden[:, here] = slope @ items
        to_items += slope.flatten(0, 1).T @ hidden[:, here].flatten(0, 1)
    return total, to_hidden, to_items
