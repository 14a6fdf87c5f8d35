"""Which tables an untrusted message may hold: checked first, for every table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Expectation:
    """Shape and width that an arriving table must have.

    Args:
        shape: that it has.
        width: bytes a value.
    """

    shape: tuple[int, ...]
    width: int

    def require(self, shape: tuple[int, ...], width: int) -> None:
        """Refuse a table before memory is taken for it."""
        if shape != self.shape:
            raise ValueError(f"a table of shape {shape} where one of shape {self.shape} belongs")
        if width != self.width and 0 not in shape:
            raise ValueError(f"a table with values of {width} bytes; expected {self.width}")


@dataclass(frozen=True)
class Expected:
    """Tables that an untrusted message may hold, so that no message can make the reader allocate more.

    Args:
        shapes: by name.
        width: bytes a value of every table; words always take 4.
    """

    shapes: Mapping[str, tuple[int, ...]]
    width: int

    def of(self, name: str) -> Expectation:
        """The expectation of a table; refuses other names."""
        if name not in self.shapes:
            raise ValueError(f"a table {name[:40]!r} that is not expected")
        return Expectation(self.shapes[name], self.width)
