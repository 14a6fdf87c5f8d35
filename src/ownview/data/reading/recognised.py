"""Columns that are plainly a time or a title by their values, under any name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ownview.base.items.column_names import TIME_WORDS, bare_name
from ownview.data.dates import EARLIEST, ticks_in_a_second
from ownview.data.reading.date_forms import read_dates
from ownview.data.reading.string_table import Table

if TYPE_CHECKING:
    import polars as pl

_LOOKED_AT = 2000
"""Rows by which a column is judged."""

_AGREED = 0.98
"""Share of rows with their item's usual title, in a column of titles."""

_OF_ORDERS = ("order", "purchase", "invoice", "event", "created", "bestell", "kauf", "commande", "achat", "pedido")


def time_column(table: Table, unread: Sequence[int]) -> int | None:
    """The column of moments: one of dates, or of seconds with a name that means a time; None where none is plain.

    Of several the one of orders is taken; where that does not tell, none.
    """
    found = [place for place in unread if _is_time(table, place)]
    if len(found) > 1:
        named = [place for place in found if any(word in bare_name(table.name(place)) for word in _OF_ORDERS)]
        found = named or found
    return found[0] if len(found) == 1 else None


def title_column(table: Table, item: int, unread: Iterable[int]) -> int | None:
    """The column of titles: words, one for an item, hardly two items with the same; the longest of several.

    Without repeated items nothing tells a title from a remark, so then none is taken.
    """
    best: tuple[float, int] | None = None
    items = table.column(item)
    several = len(items) >= 1.5 * items.n_unique()
    for place in unread if several else ():
        column = table.column(place)
        length = _words(column)
        if length and _names_items(items, column) and (best is None or length > best[0]):
            best = (length, place)
    return None if best is None else best[1]


def likely_ids(table: Table) -> str:
    """Two columns that may be user and item, as a proposal behind an error; empty where none are likely.

    Ids come again, and are neither times nor fractions nor sentences.
    """
    likely = []
    for place in range(table.frame.width):
        column = table.column(place)
        given = column.filter(column != "")
        again = len(given) > given.n_unique() > 1
        if (
            again
            and not _is_time(table, place)
            and not _words(column)
            and not given.str.contains(r"^-?\d+[.,]\d").all()
        ):
            likely.append((given.n_unique(), place))
    if len(likely) < 2:
        return ""
    user, item = sorted(place for _, place in sorted(likely, reverse=True)[:2])
    named = shlex.quote(f"user={table.name(user)},item={table.name(item)}")
    return f"; perhaps --columns {named} (values such as {table.column(user)[0]!r} and {table.column(item)[0]!r})"


def _is_time(table: Table, place: int) -> bool:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    column = table.column(place)
    given = column.filter(column != "")[:_LOOKED_AT]
    if not len(given):
        return False
    number = given.cast(pl.Float64, strict=False)
    if number.null_count() == len(given):
        seconds = read_dates(given.to_list(), None).seconds
        return all(one is not None for one in seconds.values())
    if number.null_count() or not any(word in bare_name(table.name(place)) for word in TIME_WORDS):
        return False
    middle = number.median()
    assert isinstance(middle, float)
    ticks = ticks_in_a_second(int(middle)) if abs(middle) < 2.0**62 else None
    return ticks is not None and middle // ticks >= EARLIEST


def _words(column: pl.Series) -> float:
    """The mean length of a column of words; 0 where it is none: few letters, few blanks."""
    given = column.filter(column != "")[:_LOOKED_AT]
    if not len(given):
        return 0.0
    spaced, lettered = given.str.contains(r"\S\s\S").mean(), given.str.contains(r"\p{L}{2}").mean()
    length = given.str.len_chars().mean()
    assert isinstance(spaced, float)
    assert isinstance(lettered, float)
    assert isinstance(length, float)
    return length if spaced >= 0.3 and lettered >= 0.9 and length <= 200 else 0.0


def _names_items(items: pl.Series, column: pl.Series) -> bool:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    given = pl.DataFrame({"item": items, "title": column}).filter(pl.col("title") != "")
    pairs = given.group_by("item", "title").len().group_by("item").agg(pl.col("len").max(), pl.col("title").first())
    agreed = int(pairs["len"].sum()) >= _AGREED * given.height
    distinct = pairs["title"].n_unique() >= 0.8 * pairs.height
    return agreed and distinct and pairs.height >= 2
