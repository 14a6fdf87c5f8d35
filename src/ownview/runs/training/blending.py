"""The trainer of a blend: parts train side by side, and clients vote for the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.blends.blend import Blend, names_of
from ownview.blends.weights import Remembered, after_pause, at_once, lattice, own_choice, searched, wins
from ownview.data.questions import Question
from ownview.evaluation.ranking import Ranker, Scorer
from ownview.parts.sequences.transitions import standardised
from ownview.round.conduct import RoundReport
from ownview.runs.training.trainer import Trainer
from ownview.seam.portable import Attention, Blended, Factors, Linear, Portable, Refusal

BLEND_WEIGHTS = "weights"
"""Among the values of a blend: [2, P], or [n, P] where clients have their own."""


class BlendTrainer:
    """Several trainers as one.

    Args:
        model: its settings.
        parts: at work on the same data.
        rounds: by part, after how many nothing changes any more; None where every round matters.
        ranker: of validation, which chooses the weights where the settings do not name them.
        memory: bytes of scores that may be kept while weights are searched.
    """

    def __init__(
        self, model: Blend, parts: Sequence[Trainer], rounds: Sequence[int | None], ranker: Ranker, memory: int
    ) -> None:
        self.model, self.members, self.rounds = model, tuple(parts), tuple(rounds)
        self.ranker, self.memory = at_once(ranker, len(parts)), memory
        self.weights = self._given()
        self.points: int | None = None

    @property
    def federation(self) -> None:
        """There is no single one."""
        return None

    def round(self, number: int) -> RoundReport:
        """Train those parts that are not done; weights are searched on the first question."""
        reports = [
            part.round(number)
            for part, rounds in zip(self.members, self.rounds, strict=True)
            if rounds is None or number <= rounds
        ]
        self.weights = self._given()
        seconds: dict[str, float] = {}
        for report in reports:
            seconds = {part: seconds.get(part, 0.0) + value for part, value in {**seconds, **report.seconds}.items()}
        up, down, dense = (
            sum(getattr(one, name) for one in reports) for name in ("bytes_up", "bytes_down", "bytes_dense")
        )
        clients = max((one.clients for one in reports), default=0)
        return RoundReport(number, clients, None, seconds, down, up, dense)

    def asked(self, question: Question) -> Scorer:
        """Scores by all parts, with weights that the clients chose on validation."""
        if self.weights is None:
            self.weights = self._chosen()
        if question.strangers is not None and len(self.weights) != 2:
            raise SettingError(
                "blend: clients have weights of their own here, and a new user has none; take a blend with own=0"
            )
        late = after_pause(question, self.model.pause_days)
        by_user = self.weights[torch.from_numpy(late).long()] if len(self.weights) == 2 else self.weights
        return BlendScorer([part.asked(question) for part in self.members], by_user)

    def _given(self) -> Tensor | None:
        """[2, P] of the settings; None where they are to be found."""
        if not self.model.weights:
            return None
        return torch.tensor(self.model.weights, dtype=torch.float64).reshape(2, len(self.members))

    def _chosen(self) -> Tensor:
        """[2, P] by group, or [n, P] where clients choose their own."""
        question = self.ranker.question
        scorer = BlendScorer([part.asked(question) for part in self.members], torch.zeros(0))
        ask = partial(wins, Remembered(scorer, self.memory), self.ranker)
        late = after_pause(question, self.model.pause_days)
        found, self.points = searched(ask, late[question.users], len(self.members))
        if not self.model.own or question.strangers is not None:
            return torch.from_numpy(found)
        if question.earlier:
            raise SettingError(
                "blend: validation asks an earlier model here, whose clients are others; take a blend with own=0"
            )
        weights, points = found[late.astype(int)], lattice(len(self.members))
        weights[question.users] = own_choice(ask(points), late[question.users], points, self.model.own)
        return torch.from_numpy(weights)

    def notes(self) -> tuple[str, ...]:
        """Those of the parts, and the weights that were found."""
        notes = [note for part in self.members for note in part.notes()]
        if self.weights is not None and len(self.weights) == 2:
            names = names_of(self.model.parts)
            short, late = (
                ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, group, strict=True))
                for group in self.weights.tolist()
            )
            after = "" if short == late else f"; after a pause: {late}"
            origin = "of another run" if self.model.weights else "chosen on validation"
            notes.append(f"blend: weights of the {len(self.members)} parts, {origin}: {short}{after}")
        return tuple(dict.fromkeys(notes))

    def described(self) -> dict[str, Any]:
        """What was blended with which weights (not behind, and behind a pause), and how many were asked about."""
        weights = None if self.weights is None or len(self.weights) != 2 else self.weights.tolist()
        return {"parts": list(names_of(self.model.parts)), "weights": weights, "weights_tried": self.points}

    def portable(self) -> Portable:
        """The forms of all parts, and the weights that everybody has."""
        if self.weights is None or len(self.weights) != 2:
            return Refusal("has weights of their own for clients, or none yet; take a blend with own=0")
        parts = [part.portable() for part in self.members]
        for form in parts:
            if isinstance(form, Refusal):
                return Refusal(f"has a part that {form.reason}")
        return Blended(
            tuple(one for one in parts if isinstance(one, Linear | Factors | Attention)),
            (tuple(self.weights[0].tolist()), tuple(self.weights[1].tolist())),
        )

    def pack(self) -> dict[str, Tensor]:
        """Everything of all parts, and the weights."""
        packed = {} if self.weights is None else {BLEND_WEIGHTS: self.weights}
        for place, part in enumerate(self.members):
            packed |= {f"part{place}.{name}": value for name, value in part.pack().items()}
        return packed

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore all parts and the weights."""
        self.weights = packed.get(BLEND_WEIGHTS)
        for place, part in enumerate(self.members):
            prefix = f"part{place}."
            mine = {name.removeprefix(prefix): value for name, value in packed.items() if name.startswith(prefix)}
            part.unpack(mine)


class BlendScorer:
    """Scores of several models, standardised and added up.

    Args:
        parts: of the models.
        weights: [n, P] by user.
    """

    def __init__(self, parts: Sequence[Scorer], weights: Tensor) -> None:
        self.scorers, self.weights = parts, weights

    def parts(self, users: Tensor) -> Tensor:
        """[P, B, m] each part's scores, standardised over the items of each user."""
        return torch.stack([standardised(part.scores(users, None)) for part in self.scorers])

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] sums of the parts."""
        stacked = self.parts(users)
        mine = self.weights.to(stacked)[users]
        every = torch.einsum("bp,pbm->bm", mine, stacked)
        return every if items is None else every.gather(1, items)
