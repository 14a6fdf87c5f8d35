"""A federation with liars among its clients, under a server that checks what it sees, or under one that does not."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import BOOSTED, BOUNDED, Crew
from ownview.attacks.dishonest.lies import enlarged, to_norm, worst_direction
from ownview.attacks.view import Scene
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.messages.limits import LARGEST_VALUE
from ownview.messages.upload import Upload
from ownview.round.federation import Federation
from ownview.round.here import Here
from ownview.round.scorers import asked
from ownview.seam.client import Reporting, Training

_LIST = 10
_USERS_AT_ONCE = 256


@dataclass
class Heard:
    """What a server has seen of uploads.

    Args:
        norms: of honest ones.
        sent: by liars.
        refused: of these, with the first reason.
        why: the first reason.
    """

    norms: list[float] = field(default_factory=list)
    sent: int = 0
    refused: int = 0
    why: str = ""


@dataclass(frozen=True, eq=False)
class Infiltrated(Terms):
    """Terms that some clients do not keep.

    Args:
        crew: of liars.
        factor: by which they enlarge what they send.
        checked: whether the server refuses what no honest client can have made.
        heard: what it has seen.
    """

    crew: Crew | None = None
    factor: float = 1.0
    checked: bool = True
    heard: Heard = field(default_factory=Heard)

    def in_parts(self, upload: Upload) -> list[Upload]:
        """Honest uploads as they are, and behind them those of liars that the server counts."""
        if self.crew is None:
            return super().in_parts(upload)
        lying = torch.isin(upload.clients.cpu(), self.crew.members).to(upload.clients.device)
        honest = upload.chosen(~lying)
        self.heard.norms += honest.norms().tolist()
        lies = [self._lie(upload.one(k)) for k in lying.nonzero()[:, 0].tolist()]
        return super().in_parts(honest) + [one for one in lies if self._counted(one)]

    def _lie(self, upload: Upload) -> Upload:
        assert self.crew is not None
        if self.crew.means not in (BOOSTED, BOUNDED):
            return upload
        work = self.client.work
        sends = work.sends if isinstance(work, Reporting) else {}
        worst = worst_direction(upload, self.crew, sends, self.world.num_items)
        if self.crew.means == BOUNDED:
            return to_norm(worst, sorted(self.heard.norms)[len(self.heard.norms) // 2])
        most = work.most_samples(self.world.num_items) if self.checked and isinstance(work, Training) else 2**32 - 1
        return replace(enlarged(worst, self.factor), samples=torch.full_like(upload.samples, most))

    def _counted(self, upload: Upload) -> bool:
        """Whether the server adds a liar's upload up: always what is finite, where it checks nothing."""
        self.heard.sent += 1
        why = "".join(self.refusals(upload, 1, None).values()) if self.checked else ""
        if not why and not float(upload.norms()[0]) <= LARGEST_VALUE:
            why = f"a value beyond {LARGEST_VALUE:g}"
        if why:
            self.heard.refused += 1
            self.heard.why = self.heard.why or why
        return not why


def infiltrated(scene: Scene, crew: Crew, factor: float, *, checked: bool) -> Federation:
    """The scene's federation with some liars among its clients."""
    split = crew.infiltrated()
    federation = replace(scene, split=split, excluded=split.training_items()).federation()
    given = {one.name: getattr(federation.terms, one.name) for one in fields(Terms)}
    terms = Infiltrated(**given, crew=crew, factor=factor, checked=checked)
    federation.terms, federation.server = terms, AggregationServer(terms)
    federation.where = Here(terms, federation.work)
    return federation


@dataclass(frozen=True)
class Lists:
    """What honest people's lists look like.

    Args:
        exposure: share of those who do not have the target whose ten items have it.
        hits: share of those who are asked whose ten items have what they took next (HR@10).
    """

    exposure: float
    hits: float


def lists_of(federation: Federation, crew: Crew) -> Lists:
    """Of everybody who is honest, by the question of the test; not a number where scores are none."""
    question, device = federation.split.test, federation.machine.device
    honest = torch.ones(federation.split.num_users, dtype=torch.bool)
    honest[crew.members] = False
    users = torch.from_numpy(question.users)
    shown, without, right = 0, 0, 0
    users, scorer = users[honest[users]], asked(federation, question)
    for some in torch.split(users, _USERS_AT_ONCE):
        scores = scorer.scores(some.to(device), None).cpu().double()
        if not bool(torch.isfinite(scores).all()):
            return Lists(math.nan, math.nan)
        lists = _best(scores, some, federation)
        hidden, mask = question.hidden.padded(some)
        has = ((hidden == crew.target) & mask).any(1)
        without += int((~has).sum())
        shown += int(((lists == crew.target).any(1) & ~has).sum())
        answers, real = question.relevant.padded(some)
        right += int(((lists[:, :, None] == answers[:, None, :]) & real[:, None, :]).any(2).any(1).sum())
    return Lists(shown / max(1, without), right / max(1, len(users)))


def _best(scores: Tensor, users: Tensor, federation: Federation) -> Tensor:
    """[B, 10] the items with the highest scores among candidates."""
    hidden, mask = federation.split.test.hidden.padded(users)
    never = torch.zeros_like(scores).scatter_add_(1, hidden, mask.to(scores.dtype)) > 0
    return scores.masked_fill(never, -math.inf).topk(min(_LIST, scores.shape[1]), dim=1).indices
