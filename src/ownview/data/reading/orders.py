"""What stands on the first line of an order alone, and holds for all of its lines.

Shops export a line a product: Shopify writes the payment's status, and when the order was cancelled, on the first
line of each order and leaves both empty below. A refund of the whole order is then seen on one product in many.
A status on another line is that line's own: one product of several that was returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ownview.base.display.amounts import counted
from ownview.base.items.column_names import bare_name
from ownview.data.dates import EARLIEST, LATEST, ticks_in_a_second
from ownview.data.reading.date_forms import read_dates
from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import Table
from ownview.data.reading.values import note_rows

if TYPE_CHECKING:
    import polars as pl

_OF_AN_ORDER = {"user": "a customer", "timestamp": "a time", "event": "a status", "cancelled": ""}
"""Columns that say something of a whole order, and what; not noted where rows are left out for it anyway."""

_OF_THE_FIRST_LINE = ("event", "cancelled")
"""Of these, the ones that hold for the whole order on its first line alone."""

_NUMBER, _LINE = "name", "lineitemname"
"""Shopify calls an order's number its name, where lines have names of their own."""


def order_column(header: Sequence[str], known: Mapping[str, int]) -> int | None:
    """The column that says which lines are one order; None where there is none."""
    names = [bare_name(field) for field in header]
    if _LINE in names and _NUMBER in names:
        return names.index(_NUMBER)
    return known.get("order")


def with_whole_orders(table: Table, where: Mapping[str, Sequence[int]], problems: Problems) -> Table:
    """The table with every line's empty fields taken from its order.

    A customer or a time is that of any line, where the order has one value and no other; status and cancellation are
    those of the order's first line.

    Args:
        table: the rows.
        where: positions of the columns; the order's and those that say something of it.
        problems: takes note of how many lines were completed, by column.
    """
    if "order" not in where:
        return table
    order = table.column(where["order"][0])
    for key, what in _OF_AN_ORDER.items():
        places = where.get(key, ())
        if len(places) != 1 or places[0] == where["order"][0]:
            continue
        column = table.column(places[0])
        whole = _completed(order, column, first=key in _OF_THE_FIRST_LINE)
        count = int((whole != column).sum())
        if not count:
            continue
        name = table.frame.columns[places[0]]
        table = replace(table, frame=table.frame.with_columns(whole.alias(name)))
        if what:
            problems.note(f"{counted(count, 'row')} without {what}: that of another row of the same order")
    return table


def cancelled(table: Table, where: Mapping[str, Sequence[int]], problems: Problems) -> pl.Series:
    """[r] True for lines of orders that say when they were cancelled: by a date, or by seconds or finer since 1970.

    `NULL`, `0000-00-00 00:00:00`, `false` and the like, as databases write what never was, cancel nothing.
    """
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    if "cancelled" not in where:
        return pl.Series([False]).new_from_index(0, table.frame.height)
    position = where["cancelled"][0]
    given = table.column(position)
    marked = _moments(given)
    if len(others := given.filter((given != "") & ~marked)):
        name, listed = table.name(position), f"{counted(len(others), 'value')} such as {others[0]!r}"
        problems.note(
            f"column {name!r}: {listed} count as empty, being no moments"
            if bool(marked.any())
            else f"column {name!r} is not looked at: it holds no moment, but {listed}"
        )
    kind, advice = "rows of orders with a time of cancellation", "the order was cancelled"
    note_rows(problems, table, position, marked, kind, "cancelled at", advice, refused=False)
    return marked


def _moments(column: pl.Series) -> pl.Series:
    """[r] whether a cell is a moment that a shop's clock has shown: not the beginning of 1970, and no end of times."""
    given = column.unique().to_list()
    dates = read_dates(given, None).seconds
    # The number first: some milliseconds can be read as a date, such as 1700010100000.
    return column.is_in([one for one in given if EARLIEST <= (_seconds(one) or dates[one] or 0) < LATEST])


def _seconds(text: str) -> int:
    """Since 1970, of a number of seconds or of finer units; 0 for what is none."""
    try:
        number = int(float(text))
    except (OverflowError, ValueError):
        return 0
    return number // (ticks_in_a_second(number) or LATEST)


def _completed(order: pl.Series, column: pl.Series, *, first: bool) -> pl.Series:
    """[r] the column, with empty fields filled from the first row of the order, or from its only value in any row."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    if not bool((column == "").any()):
        return column
    rows = pl.DataFrame({"order": order, "own": column}).filter(pl.col("order") != "")
    given = rows if first else rows.filter(pl.col("own") != "")
    found = given.group_by("order").agg(pl.col("own").first(), pl.col("own").n_unique().alias("values"))
    value_of = dict(found.filter(first | (pl.col("values") == 1)).select("order", "own").iter_rows())
    if not value_of:
        return column
    whole = order.replace_strict(value_of, default="", return_dtype=pl.String)
    return pl.select(pl.when(column == "").then(whole).otherwise(column)).to_series()
