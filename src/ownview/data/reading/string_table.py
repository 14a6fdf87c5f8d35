"""A table of strings that remembers which line each row came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

IsHeader = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Table:
    """Strings without nulls; an empty field is the empty string.

    Args:
        path: the file, for messages.
        header: names of the columns, or None where the file has none.
        frame: the rows below the header.
        place: from row position to 'line 7' (text) or 'row 7' (Parquet, Excel), as a person counts.
        moments: positions of the columns whose cells are dates in the file itself, and seconds since 1970 here.
    """

    path: Path
    header: list[str] | None
    frame: pl.DataFrame
    place: Callable[[int], str]
    moments: frozenset[int] = frozenset()

    def column(self, position: int) -> pl.Series:
        """Values without blanks around them."""
        return self.frame.to_series(position).str.strip_chars()

    def name(self, position: int) -> str:
        """What messages call a column: its name, or its number where there are no names."""
        return self.header[position] if self.header is not None else str(position)

    def keeping(self, kept: pl.Series) -> Table:
        """The marked rows; they keep their places in the file."""
        if bool(kept.all()):
            return self
        rows = kept.arg_true()  # 4 bytes a row; a list of them would take 36
        return replace(self, frame=self.frame.filter(kept), place=lambda row: self.place(int(rows[row])))
