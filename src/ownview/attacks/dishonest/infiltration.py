"""Clients of which some lie, under a server that checks what it sees, or under one that does not."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import BACKDOOR, BOOSTED, COUNTED_BOOSTED, PLAUSIBLE, Crew
from ownview.attacks.dishonest.lies import enlarged, to_norm, worst_direction
from ownview.attacks.dishonest.published.catalogue import published_attack
from ownview.attacks.view import Scene
from ownview.base.errors import SettingError
from ownview.data.splitting.splits import Split
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.messages.limits import LARGEST_VALUE
from ownview.messages.robust import with_tables_moved
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masked import Masked
from ownview.round.conduct import Round, Uploads
from ownview.round.federation import Federation
from ownview.round.local_fleet import LocalFleet
from ownview.round.scorers import asked
from ownview.seam.client import Reporting, Training

_LIST = 10
_BOOSTED = (BOOSTED, COUNTED_BOOSTED)
_USERS_AT_ONCE = 256


class Infiltrated(LocalFleet):
    """All clients of a federation; liars send last, when they know how long honest uploads are.

    Args:
        terms: that the others keep.
        work: of the clients.
        crew: of liars.
        factor: by which boosted uploads, and those of attacks of the literature, are longer.
        checked: whether the server refuses what no honest client can have made.
        cohort: [C] who takes part in every round; the federation's own choice where None.
    """

    def __init__(
        self, terms: Terms, work: Work, crew: Crew, factor: float, *, checked: bool, cohort: Tensor | None = None
    ) -> None:
        super().__init__(terms, work)
        self.crew, self.factor, self.checked, self.cohort = crew, factor, checked, cohort
        self.published = published_attack(crew)
        if self.published is not None and terms.masked is not None:
            raise SettingError(f"{crew.means}: is written for uploads in clear; expected privacy=none")
        self.sent, self.refused, self.why = 0, 0, ""
        """Uploads of liars; those that were left out, and the first reason."""

    def choose(self, server: AggregationServer, number: int) -> Tensor:
        """Who takes part."""
        chosen = super().choose(server, number)
        return chosen if self.cohort is None else self.cohort.to(chosen.device)

    def ask(self, going: Round) -> Uploads:
        """Honest uploads as they are, and behind them those of liars that the server counts."""
        held, norms, masked = [], [0.0], self.terms.masked
        if self.published is not None:
            self.published.begin(going.first.values)
        with closing(super().ask(going)) as coming:
            for upload in coming:
                lying = torch.isin(upload.clients.cpu(), self.crew.members).to(upload.clients.device)
                honest = upload.chosen(~lying)
                held += [upload.one(place) for place in lying.nonzero()[:, 0].tolist()]
                if len(honest.clients) and masked is not None:
                    norms += self._words_as_numbers(honest, going).norm(dim=1).tolist()
                    yield honest
                elif len(honest.clients):
                    if self.published is not None:
                        self.published.overhear(honest, self._weights(honest))
                    norms += with_tables_moved(honest, going.personal, -1).norms().tolist()
                    yield honest
        usual = sorted(norms)[len(norms) // 2]
        if self.published is not None:
            for one in held:
                self.published.gather(one, self._weights(one))
        for one in held:
            lie = self._lie(one, going, usual)
            why = self._refusal(lie, going)
            self.sent, self.refused, self.why = self.sent + 1, self.refused + bool(why), self.why or why
            if why:
                going.leave_out(lie.clients.tolist(), why)
            else:
                yield lie

    def _lie(self, upload: Upload, going: Round, usual: float) -> Upload:
        """What a liar sends in the place of the upload of its fake history."""
        if self.crew.means == PLAUSIBLE:
            return upload
        if self.terms.masked is not None:
            return self._whole_numbers(upload, self.terms.masked, going, usual)
        if self.published is not None:
            lie = self.published.lie(upload)
            return lie if self.published.own_length else enlarged(to_norm(lie, usual), self.factor)
        work = self.terms.client.work
        sends = work.sends if isinstance(work, Reporting) else {}
        change = with_tables_moved(upload, going.personal, -1)
        worst = worst_direction(change, self.crew, sends, going.first.values)
        if self.crew.means in _BOOSTED:
            most = work.most_samples(self.crew.split.num_items) if self.checked and isinstance(work, Training) else 0
            samples = torch.full_like(upload.samples, most or 2**32 - 1)
            worst = replace(enlarged(worst, self.factor), samples=samples)
        else:
            worst = to_norm(worst, usual)
        return with_tables_moved(worst, going.personal, 1)

    def _weights(self, upload: Upload) -> Tensor:
        """[B] how much each client counts in the server's mean."""
        return upload.samples if self.terms.weighting == "samples" else torch.ones_like(upload.samples)

    def _whole_numbers(self, upload: Upload, masked: Masked, going: Round, usual: float) -> Upload:
        """Under masks: what a liar adds to the sum; its norm cannot be seen.

        At most half of what the sum has room for: beyond it, it would be taken for a number below 0.
        """
        coding, work = masked.coding(going.number, None), self.terms.client.work
        numbers = masked.layout.spread_out(upload, masked.layout.named(self._words_as_numbers(upload, going)))
        sends = work.sends if isinstance(work, Reporting) else {}
        lie = masked.layout.flat(worst_direction(numbers, self.crew, sends, going.first.values))
        lie = lie * (self.factor if self.crew.means in _BOOSTED else usual / float(lie.norm().clamp(min=1e-30)))
        most = float(MODULUS // 4)
        return replace(upload, words=(lie * coding.scale).clamp(-most, most).round().long() % MODULUS)

    def _words_as_numbers(self, upload: Upload, going: Round) -> Tensor:
        """[B, D] what masked clients add."""
        assert self.terms.masked is not None
        assert upload.words is not None
        return self.terms.masked.coding(going.number, None).values(upload.words)

    def _refusal(self, upload: Upload, going: Round) -> str:
        """Why the server counts a liar's upload not; where it checks nothing, all that is finite counts."""
        why = "".join(going.refusals(upload).values()) if self.checked else ""
        if not why and not float(upload.norms()[0]) <= LARGEST_VALUE:
            why = f"a value beyond {LARGEST_VALUE:g}"
        return why


def infiltrated(
    scene: Scene, crew: Crew, factor: float, *, checked: bool, cohort: Tensor | None = None
) -> tuple[Federation, Infiltrated]:
    """The scene's federation with some liars among its clients, and where these are; see `Infiltrated`."""
    split = crew.infiltrated()
    federation = replace(scene, split=split, excluded=split.training_items()).federation()
    fleet = Infiltrated(federation.terms, federation.work, crew, factor, checked=checked, cohort=cohort)
    federation.fleet = fleet
    return federation, fleet


@dataclass(frozen=True)
class Lists:
    """What honest people's lists look like.

    Args:
        exposure: share of those who do not have the target whose ten items have it; of a backdoor, of those among them
            who have the trigger.
        hits: share of those who are asked whose ten items have what they took next (HR@10).
    """

    exposure: float
    hits: float


def top_tens(federation: Federation, among: Tensor | None = None) -> Tensor | None:
    """[q, 10] the ten best items of everybody whom the test asks, in its order; None where scores are no numbers.

    Where `among` says so, of these positions alone.
    """
    question, device = federation.split.test, federation.machine.device
    scorer, found = asked(federation, question), []
    for some in torch.split(_asked_among(federation.split, among), _USERS_AT_ONCE):
        scores = scorer.scores(some.to(device), None).cpu().double()
        if not bool(torch.isfinite(scores).all()):
            return None
        hidden, mask = question.hidden.padded(some)
        never = torch.zeros_like(scores).scatter_add_(1, hidden, mask.to(scores.dtype)) > 0
        found.append(scores.masked_fill(never, -math.inf).topk(min(_LIST, scores.shape[1]), dim=1).indices)
    return torch.cat(found)


def _asked_among(split: Split, among: Tensor | None) -> Tensor:
    users = torch.from_numpy(split.test.users)
    return users if among is None else users[torch.isin(users, among)]


def lists_of(tens: Tensor | None, crew: Crew, among: Tensor | None = None) -> Lists:
    """Of everybody who is honest, by the question of the test; not a number where there are no lists.

    Args:
        tens: of `top_tens`.
        crew: of liars.
        among: whose lists they are, as there.
    """
    question = crew.split.test
    if tens is None:
        return Lists(math.nan, math.nan)
    users = _asked_among(crew.split, among)
    honest = ~torch.isin(users, crew.members)
    users, tens = users[honest], tens[honest]
    hidden, mask = question.hidden.padded(users)
    meant = ~((hidden == crew.target) & mask).any(1)
    if crew.goal == BACKDOOR:
        meant &= ((hidden == crew.trigger) & mask).any(1)
    answers, real = question.relevant.padded(users)
    right = ((tens[:, :, None] == answers[:, None, :]) & real[:, None, :]).any(2).any(1)
    shown = (tens == crew.target).any(1) & meant
    return Lists(int(shown.sum()) / max(1, int(meant.sum())), int(right.sum()) / max(1, len(users)))
