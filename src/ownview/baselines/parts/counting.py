"""Central models that count: what they learn follows from whole sums over people, each person's part from its history.

So a count can be kept, added to and taken from, one person at a time (`ownview.sums`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ownview.baselines.parts.central import OneShot
from ownview.data.interactions import FloatArray, IntArray
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.seam.training import Params


class Cells(NamedTuple):
    """The cells of a sum that are not 0: [c] places in it as one row, ascending, and [c] values."""

    places: IntArray
    values: FloatArray


def cells_of(sums: FloatArray | IntArray) -> Cells:
    """The non-zero cells of sums [n]."""
    places = np.flatnonzero(sums)
    return Cells(places, sums[places].astype(np.float64))


def whole(cells: Cells, count: int) -> FloatArray:
    """[count] with zeros in all other places."""
    return np.asarray(np.bincount(cells.places, weights=cells.values, minlength=count), dtype=np.float64)


@dataclass(frozen=True)
class Counting(OneShot):
    """learned = learned_from(sum over people of counted(one person)). Counts know a user by the history alone."""

    by_history: ClassVar[bool] = True
    yardstick: ClassVar[bool] = True

    @abstractmethod
    def shapes(self, num_items: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the sums, by name."""

    @abstractmethod
    def counted(self, line: Timeline, num_items: int) -> dict[str, Cells]:
        """The sums of some people; those of all are the sums of these."""

    @abstractmethod
    def learned_from(self, sums: Mapping[str, Cells], num_items: int) -> Params:
        """The argument of `scores`."""

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Count everybody at once."""
        return self.learned_from(self.counted(split.timeline, split.num_items), split.num_items)
