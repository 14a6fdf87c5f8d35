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

    @classmethod
    def joined(cls, source: str, key: str, table: Mapping[str, Sequence[Any]], ids: Sequence[Any]) -> ItemTable:
        """The columns of a table whose column `key` has ids, in the order of `ids`; see `Interactions.with_tables`."""
        names = [str(name) for name in (table.columns if hasattr(table, "columns") else table)]
        what = f"{source}: the table of {key}s"
        if key not in names:
            raise DataError(f"{what} has columns {', '.join(names[:12])}; expected one called {key!r}")
        require_columns(what, names)
        listed = {name: ["" if one is None or str(one) == "nan" else str(one) for one in table[name]] for name in names}
        lengths = {len(values) for values in listed.values()}
        if len(lengths) > 1:
            raise DataError(f"{what} has columns of {min(lengths)} to {max(lengths)} values; expected one a row")
        place: dict[str, int] = {}
        for row, one in enumerate(listed[key]):
            if one in place:
                raise DataError(
                    f"{what}: row {row + 1}: {key} {one!r} stands in row {place[one] + 1} too; expected every id once"
                )
            place[one] = row
        rows = [place.get(str(one)) for one in ids]
        if all(row is None for row in rows):
            raise DataError(f"{what} names none of the {key}s of the data, such as {ids[0]!r}; expected the same ids")
        others = [name for name in names if name != key]
        return cls({name: tuple("" if row is None else listed[name][row] for row in rows) for name in others})

    def behind(self, count: int) -> ItemTable:
        """The same behind so many items that nothing is known of."""
        return ItemTable({name: ("",) * count + values for name, values in self.columns.items()})

    def followed_by(self, other: ItemTable, count: int) -> ItemTable:
        """These items, and behind them the `count` of another table; a column that one of them lacks is empty there."""
        size = len(next(iter(self.columns.values()), ()))
        names = dict.fromkeys([*self.columns, *other.columns])
        none, less = ("",) * size, ("",) * count
        return ItemTable({one: self.columns.get(one, none) + other.columns.get(one, less) for one in names})

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
            f"{source}: line 1: {len(header):,} columns; expected {MOST_COLUMNS} columns about items or users at most"
        )
    names = [name.strip() for name in header]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(f"{source}: line 1: two columns are called {twice[0]!r}; expected different names")
