"""Reads the numbers of a message in order and checks each against its range."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.messages.coarse import unpacked
from ownview.messages.limits import LARGEST_VALUE

Array = npt.NDArray[Any]


class Reader:
    """Reads numbers and values one after the other.

    Args:
        data: of a message.
        place: offset to begin at.
        kind: dtype of values.
        bounded: whether values that are not finite, or beyond `LARGEST_VALUE`, are refused.
    """

    def __init__(self, data: bytes, place: int, kind: str, *, bounded: bool = False) -> None:
        self.data, self.place, self.kind, self.bounded = data, place, np.dtype(kind), bounded

    def number(self) -> int:
        """One whole number."""
        return int(self.numbers(1)[0])

    def numbers(self, count: int) -> Array:
        """Whole numbers."""
        return self._taken(count, np.dtype("<u4"))

    def rows(self, count: int, width: int, *, coarse: bool) -> Array:
        """Values of so many rows, written out or as multiples of the powers of two that stand before them."""
        if not coarse:
            return self.values(count * width)
        power, counts = self._taken(count, np.dtype("<i2")), self._taken(count * width, np.dtype("i1"))
        return self._bounded(unpacked(power, counts.reshape(count, width), self.kind.str))

    def values(self, count: int) -> Array:
        """Values of the table's kind."""
        return self._bounded(self._taken(count, self.kind))

    def _bounded(self, values: Array) -> Array:
        # Written so that what is no number is refused as well.
        if self.bounded and values.size and not -LARGEST_VALUE <= values.min() <= values.max() <= LARGEST_VALUE:
            raise ValueError(f"a value that is not finite or beyond {LARGEST_VALUE:g}")
        return values

    def _taken(self, count: int, kind: np.dtype[Any]) -> Array:
        taken = np.frombuffer(self.data, dtype=kind, count=count, offset=self.place) if count else np.zeros(0, kind)
        self.place += count * kind.itemsize
        return taken
