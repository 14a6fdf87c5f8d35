"""A model at work on data with new items: where it says nothing of them itself, text carries its scores there."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.items.item_text import term_vectors
from ownview.data.questions import Question
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.ranking import Scorer
from ownview.parts.text.carried import MU, Carrier, carrier
from ownview.round.conduct import RoundReport
from ownview.round.federation import Federation
from ownview.runs.training.trainer import Trainer
from ownview.seam.portable import Portable

_DOUBLE = 8


def carrier_of(model: object, split: Split, machine: Machine) -> Carrier:
    """By the text of the split's items, with the model's own ridge if it has one; refuses items without any text."""
    about = split.data.about
    if about is None or not about.known:
        raise SettingError(
            f"new items of {split.data.name} have to be told apart by what is known of them, and nothing is but their "
            "ids; expected a file with columns item and title, and any others (data import --items FILE)"
        )
    taken = split.num_items - split.num_new
    needed = _DOUBLE * taken * (taken + 2 * split.num_new)
    machine.require(needed, "the kernel of the items' text", "raise --memory, or take data with fewer items")
    return carrier(term_vectors(about), split.num_new, getattr(model, "new_items_ridge", MU))


class CarryingTrainer:
    """A trainer whose scores of new items are carried by text.

    Args:
        inner: trains on taken items, new ones being part of its catalogue.
        carrier: to the new items.
    """

    def __init__(self, inner: Trainer, carrier: Carrier) -> None:
        self.inner, self.carrier = inner, carrier

    @property
    def federation(self) -> Federation | None:
        """Federation of the model."""
        return self.inner.federation

    def round(self, number: int) -> RoundReport:
        """Train one round."""
        return self.inner.round(number)

    def asked(self, question: Question) -> Scorer:
        """The model's scores, carried."""
        return CarriedScorer(self.inner.asked(question), self.carrier)

    def notes(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.inner.notes()

    def portable(self) -> Portable:
        """The model's form, carried."""
        return self.carrier.portable(self.inner.portable())

    def pack(self) -> dict[str, Tensor]:
        """The model's values; the carrier is made of public text whenever it is needed."""
        return self.inner.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore the model."""
        self.inner.unpack(packed)


class CarriedScorer:
    """Scores of taken items by a model, of new ones carried from those."""

    def __init__(self, inner: Scorer, carrier: Carrier) -> None:
        self.inner, self.carrier = inner, carrier

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` for `users`, of all items where `items` is None."""
        every = self.carrier.columns(self.inner.scores(users, None))
        return every if items is None else every.gather(1, items)
