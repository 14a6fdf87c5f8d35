"""The interface of everything that can be trained in rounds, scored, saved and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from ownview.data.questions import Question
from ownview.evaluation.ranking import Scorer
from ownview.round.conduct import RoundReport
from ownview.round.federation import Federation
from ownview.seam.portable import Portable


class Trainer(Protocol):
    """A model at work."""

    @property
    def federation(self) -> Federation | None:
        """Clients and server, where it has any."""

    def round(self, number: int) -> RoundReport:
        """Train one round."""

    def asked(self, question: Question) -> Scorer:
        """Scores given what is known when the question is asked; for as long as the model does not train."""

    def notes(self) -> tuple[str, ...]:
        """Warnings to print with results."""

    def portable(self) -> Portable:
        """The model's portable form; see `seam.portable`."""

    def pack(self) -> dict[str, Tensor]:
        """Everything needed to go on, and to predict."""

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
