"""A question to a model: who is asked, what is right, and what is known by then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ownview.data.interactions import IdArray, IntArray
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Question:
    """A question to n users.

    Args:
        relevant: every user's right answers, distinct; who has none is not asked. Positions from the number of items on
            stand for items without a row when the model was made: it cannot find them, and they count as missed.
        known: what every user's client knows when it is asked, oldest first.
        hidden: every user's items that are no candidates and are never recommended, distinct and ascending.
        unmet: ids of those items.
        when: [n] the time of the first right answer, hidden from models; None without times.
        strangers: ids of the n users where they never took part in training; None where they are those of the split.
        open: whether nothing is right: all users are asked for a list that cannot be measured.
        earlier: whether it is for the model of `Split.earlier`, which trained on less: its positions are of that split,
            and the model that is tested may have trained on the answers.
        among: [c] positions of the only items that are candidates; None where all are that are not hidden.
    """

    relevant: Ragged
    known: Timeline
    hidden: Ragged
    unmet: IdArray | None = None
    when: IntArray | None = None
    strangers: IdArray | None = None
    open: bool = False
    earlier: bool = False
    among: IntArray | None = None

    @property
    def users(self) -> IntArray:
        """[k] positions of the users that are asked, ascending."""
        return np.arange(len(self.relevant)) if self.open else np.flatnonzero(self.relevant.lengths.numpy())

    @property
    def single(self) -> bool:
        """Whether everybody has one right answer at most."""
        return not len(self.relevant) or int(self.relevant.lengths.max()) <= 1

    def answers(self, user: int) -> list[int]:
        """One user's right answers."""
        return [int(item) for item in self.relevant.of(user).tolist()]
