"""From columns of text to ids, ratings and times; the first bad value is named with its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from ownview.base.errors import DataError
from ownview.data.dates import EARLIEST, LATEST, UNITS, ticks_in_a_second
from ownview.data.interactions import FloatArray, IdArray, IntArray
from ownview.data.tables import Table

if TYPE_CHECKING:
    import polars as pl

_LARGEST_TIME = 2.0**62


def ids(table: Table, position: int, name: str) -> IdArray:
    """Ids as the source has them: int64 when every one is written as an integer, else text.

    '007', '+7' and '7.0' are not how an integer is written, so they keep the whole column text. Blanks around an
    id are no part of it: 'ann' and 'ann ' are one.
    """
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    column = table.frame.to_series(position).str.strip_chars()
    _refuse(table, position, column == "", f"no {name}", "expected an id in every row")
    as_integer = column.cast(pl.Int64, strict=False)
    if bool((as_integer.cast(pl.String) == column).fill_null(False).all()):
        return as_integer.to_numpy().astype(np.int64)
    return np.array(column.to_list(), dtype=object)


def ratings(table: Table, position: int) -> FloatArray | None:
    """Finite numbers, or None where the column is empty from top to bottom."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    column = table.frame.to_series(position).str.strip_chars()
    if _all_empty(table, position, column, "rating"):
        return None
    number = column.cast(pl.Float64, strict=False)
    bad = ~number.is_finite().fill_null(False)
    _refuse(table, position, bad, "rating", "expected a finite number")
    return number.to_numpy().astype(np.float64)


def timestamps(table: Table, positions: list[int], allow_negative: bool) -> IntArray | None:
    """Whole seconds (fractions are cut down), or None where the column is empty from top to bottom.

    Numbers and ISO dates are accepted, but not both in one file; dates without a zone are UTC. Three
    positions are year, month and day. Numbers that would be moments after the year 5138 in seconds are milliseconds,
    microseconds or nanoseconds, as the middle one tells.
    """
    column, position = _time_text(table, positions), positions[0]
    if _all_empty(table, position, column, "timestamp"):
        return None
    numbers = _numeric_times(table, position, column)
    seconds = _iso_times(table, position, column) if numbers is None else _in_seconds(table, position, numbers)
    if not allow_negative:
        _refuse(table, position, seconds < 0, "timestamp", "expected 0 or more (seconds since 1970)", shown=column)
    return seconds.to_numpy().astype(np.int64)


def _time_text(table: Table, positions: list[int]) -> pl.Series:
    parts = [table.frame.to_series(position).str.strip_chars() for position in positions]
    if len(parts) == 1:
        return parts[0]
    year, *rest = parts
    text = year.str.zfill(4)
    for part in rest:
        text = text + "-" + part.str.zfill(2)
    return text


def _numeric_times(table: Table, position: int, column: pl.Series) -> pl.Series | None:
    """Seconds as integers; None when the first value is no number, so that dates are tried."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    whole = column.cast(pl.Int64, strict=False)
    if whole.null_count() == 0:
        return whole
    number = column.cast(pl.Float64, strict=False)
    if number[0] is None:
        return None
    bad = ~(number.is_finite() & (number.abs() < _LARGEST_TIME)).fill_null(False)
    _refuse(table, position, bad, "timestamp", "expected seconds as a number, as in the rows above")
    # Integers do not go through floats: above 2**53 (nanoseconds, say) that would change them.
    return pl.select(pl.coalesce(whole, number.floor().cast(pl.Int64))).to_series()


def _in_seconds(table: Table, position: int, numbers: pl.Series) -> pl.Series:
    """Times by whatever clock they are of, one for all rows."""
    expected = (
        "expected seconds since 1970, or milliseconds, microseconds or nanoseconds, or an ISO date; a column that is "
        "none of these is left out by --columns timestamp=-"
    )
    middle = int(numbers.sort()[len(numbers) // 2])
    ticks = ticks_in_a_second(middle) or 1
    seconds = numbers // ticks
    if EARLIEST <= middle // ticks < LATEST:
        other = (seconds >= LATEST) | ((seconds < EARLIEST) & (numbers >= EARLIEST))
        told = f"most rows are in {UNITS[ticks]}, and this one is not; expected one unit in all rows"
        _refuse(table, position, other, "timestamp", told)
    _refuse(table, position, seconds >= LATEST, "timestamp", expected)
    return seconds


def _iso_times(table: Table, position: int, column: pl.Series) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    seconds = {text: _iso_seconds(text) for text in column.unique().to_list()}
    result = column.replace_strict(seconds, return_dtype=pl.Int64)
    expected = "expected seconds as a number or an ISO date such as 2009-04-01 or 2009-04-01T12:00:00"
    _refuse(table, position, result.is_null(), "timestamp", expected, shown=column)
    return result


def _iso_seconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() // 1)


def _all_empty(table: Table, position: int, column: pl.Series, name: str) -> bool:
    """Whether no row has a value; rows with and without one in the same file are an error."""
    empty = column == ""
    if bool(empty.all()):
        return True
    _refuse(table, position, empty, f"no {name}", "other rows have one; give all rows a value, or none")
    return False


def _refuse(
    table: Table,
    position: int,
    bad: pl.Series,
    what: str,
    expected: str,
    *,
    shown: pl.Series | None = None,
) -> None:
    """Raise for the first row marked bad; a `what` that starts with 'no' has no value to show."""
    if not bool(bad.any()):
        return
    row = bad.arg_max() or 0
    name = table.header[position] if table.header is not None else str(position)
    value = (table.frame.to_series(position) if shown is None else shown)[row]
    found = what if what.startswith("no ") else f"{what} {value!r}"
    raise DataError(f"{table.path}: {table.place(row)}, column {name!r}: {found}; {expected}")
