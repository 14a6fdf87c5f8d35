"""What is publicly known of items besides their ids: columns of text, one value an item.

Such columns (titles, makers, categories, descriptions, years) are public: every device may use them, and no budget is
spent by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ownview.base.errors import DataError

MOST_COLUMNS = 256
"""Columns of an item file that are read; a file with more is refused: it is no table about items."""

ByItem = Mapping[str, Mapping[Any, str]]
"""By column, then by item id, what a source says; items that it says nothing of are left out."""


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Columns about m items.

    Args:
        columns: by name [m] what the column says of each item, by position; empty where nothing is known.
    """

    columns: Mapping[str, tuple[str, ...]]

    @classmethod
    def aligned(cls, by_item: ByItem, items: Sequence[Any]) -> ItemTable:
        """Columns in the order of `items`."""
        return cls({name: tuple(values.get(item, "") for item in items) for name, values in by_item.items()})

    def select(self, positions: Sequence[int]) -> ItemTable:
        """The items at these positions, in this order."""
        return ItemTable({name: tuple(values[i] for i in positions) for name, values in self.columns.items()})

    @property
    def known(self) -> int:
        """Items that at least one column says something of."""
        return sum(any(values) for values in zip(*self.columns.values(), strict=True))


def require_columns(source: str, header: Sequence[str]) -> None:
    """Refuse a file with too many columns, or with two of one name."""
    if len(header) > MOST_COLUMNS:
        raise DataError(
            f"{source}: line 1: {len(header):,} columns; expected a table about items, {MOST_COLUMNS} columns at most"
        )
    names = [name.strip() for name in header]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(f"{source}: line 1: two columns are called {twice[0]!r}; expected different names")
