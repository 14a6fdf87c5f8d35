"""From columns of text to ids, ratings and times; values that are none are noted with their places.

Every function gives what it could read and marks the rows that it could not, so that one pass over a file finds
everything that is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ownview.data.dates import EARLIEST, LATEST, UNITS, ticks_in_a_second
from ownview.data.interactions import FloatArray, IdArray, IntArray
from ownview.data.reading.date_forms import DAY_FIRST, MONTH_FIRST, read_dates
from ownview.data.reading.problems import EXAMPLES, Problem, Problems
from ownview.data.reading.string_table import Table

if TYPE_CHECKING:
    import polars as pl

_LARGEST_TIME = 2.0**62
_WHOLE_DATES = r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d[0-5]\d)?$"
"""20231114 and 20231114221300, which a clock of seconds shows in 1970 or never."""


_GROUPED = (
    (r"^[+-]?\d{1,3}(\.\d{3})+,\d+$|^[+-]?\d{1,3}(\.\d{3}){2,}$", r"\.", ","),
    (r"^[+-]?\d{1,3}(,\d{3})+\.\d+$|^[+-]?\d{1,3}(,\d{3}){2,}$", ",", r"\."),
    (r"^[+-]?\d{1,3}([ \u00a0\u202f'’]\d{3})+([.,]\d+)?$", r"[ \u00a0\u202f'’]", ","),
)
"""Numbers with marks between groups of three: how they look, the mark, and the point."""


class Column(NamedTuple):
    """values: [r] numbers, null where none could be read; bad: [r] rows that cannot stay."""

    values: pl.Series
    bad: pl.Series


def ids(column: pl.Series) -> IdArray:
    """Ids as the source has them: int64 when every one is written as an integer, else text.

    '007', '+7' and '7.0' are not how an integer is written, so they keep the whole column text. Blanks around an
    id are no part of it: 'ann' and 'ann ' are one.

    Args:
        column: [r] without blanks around values and without empty ones.
    """
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    as_integer = column.cast(pl.Int64, strict=False)
    if bool((as_integer.cast(pl.String) == column).fill_null(False).all()):
        return as_integer.to_numpy().astype(np.int64)
    return np.array(column.to_list(), dtype=object)


def numbers(column: pl.Series) -> pl.Series:
    """Finite floats, null for what is none; a comma may stand for the point, and groups are known: '4,5', '1.200,00'.

    A single group may be a fraction: '1,200' is 1.2.
    """
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    plain = column.str.replace(r"^([+-]?\d+),(\d+)$", "$1.$2")
    number = plain.cast(pl.Float64, strict=False)
    if bool((number.is_null() & (column != "")).any()):
        for grouped, mark, point in _GROUPED:
            whole = column.str.replace_all(mark, "").str.replace(point, ".").cast(pl.Float64, strict=False)
            number = pl.select(pl.when(column.str.contains(grouped)).then(whole).otherwise(number)).to_series()
    return pl.select(pl.when(number.is_finite()).then(number)).to_series()


def ratings(table: Table, position: int, problems: Problems) -> Column | None:
    """Finite numbers, or None where the column is empty from top to bottom."""
    column = table.column(position)
    empty = _empty(table, position, column, "rating", problems)
    if empty is None:
        return None
    number = numbers(column)
    bad = number.is_null() & ~empty
    note_rows(problems, table, position, bad, "ratings that are no number", "rating", "expected a finite number")
    return Column(number, bad | empty)


def timestamps(
    table: Table, positions: list[int], allow_negative: bool, problems: Problems, order: str | None = None
) -> Column | None:
    """Whole seconds (fractions are cut down), or None where the column is empty from top to bottom.

    Numbers and dates are accepted, but not both in one file; dates without a zone are UTC. Two positions are a date
    and a time of the day, three are year, month and day. Numbers that would be moments after the year 5138 in seconds
    are milliseconds, microseconds or nanoseconds, as the middle one tells; 20231114 is a date.

    Args:
        table: the rows.
        positions: of the column, or of its parts.
        allow_negative: whether times before 1970 are sound.
        problems: takes note of what is no time.
        order: of day and month in dates such as 3/4/2010; detected where None.
    """
    column, position = _time_text(table, positions), positions[0]
    empty = _empty(table, position, column, "timestamp", problems)
    if empty is None:
        return None
    given = column.filter(~empty)
    if _are_numbers(given):
        seconds, bad = _numeric_times(table, position, column, empty, problems)
    else:
        seconds, bad = _dates(table, position, column, empty, problems, order)
    if not allow_negative:
        early = (seconds < 0).fill_null(False)
        expected = "expected 0 or more (seconds since 1970)"
        note_rows(problems, table, position, early, "times before 1970", "timestamp", expected, shown=column)
        bad = bad | early
    return Column(seconds, bad | empty)


def kept_times(column: Column, kept: pl.Series) -> IntArray:
    """[r'] the times of the rows that stay."""
    return column.values.filter(kept).to_numpy().astype(np.int64)


def kept_ratings(column: Column, kept: pl.Series) -> FloatArray:
    """[r'] the ratings of the rows that stay."""
    return column.values.filter(kept).to_numpy().astype(np.float64)


def note_rows(
    problems: Problems,
    table: Table,
    position: int,
    bad: pl.Series,
    kind: str,
    what: str,
    expected: str,
    *,
    shown: pl.Series | None = None,
    refused: bool = True,
) -> None:
    """Take note of rows marked bad, if there are any; a `what` that starts with 'no' has no value to show."""
    count = int(bad.sum())
    if not count:
        return
    values = table.frame.to_series(position) if shown is None else shown
    places = bad.arg_true()[:EXAMPLES].to_list()
    empty = what.startswith("no ")
    examples = [table.place(row) if empty else f"{table.place(row)}: {values[row]!r}" for row in places]
    found = what if empty else f"{what} {values[places[0]]!r}"
    first = f"{table.place(places[0])}, column {table.name(position)!r}: {found}; {expected}"
    problems.add(Problem(kind, count, tuple(examples), "left out", first, refused))


def _time_text(table: Table, positions: list[int]) -> pl.Series:
    parts = [table.column(position) for position in positions]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return (parts[0] + " " + parts[1]).str.strip_chars()
    year, *rest = parts
    text = year.str.zfill(4)
    for part in rest:
        text = text + "-" + part.str.zfill(2)
    return text


def _are_numbers(given: pl.Series) -> bool:
    """Whether a column of times is one of numbers rather than of dates; the first decides where it is half and half."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    number = given.cast(pl.Float64, strict=False)
    dates = int(number.null_count())
    if dates * 2 == len(given):
        return number[0] is not None
    return dates * 2 < len(given) and not bool(given.str.contains(_WHOLE_DATES).all())


def _numeric_times(
    table: Table, position: int, column: pl.Series, empty: pl.Series, problems: Problems
) -> tuple[pl.Series, pl.Series]:
    """Convert times to integer seconds; one unit a column."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    whole = column.cast(pl.Int64, strict=False)
    number = column.cast(pl.Float64, strict=False)
    bad = ~(number.is_finite() & (number.abs() < _LARGEST_TIME)).fill_null(False) & whole.is_null() & ~empty
    expected = "expected seconds as a number, as in the rows above"
    note_rows(problems, table, position, bad, "times that are no number", "timestamp", expected)
    sound = pl.select(pl.when(~bad).then(number)).to_series()
    # Integers do not go through floats: above 2**53 (nanoseconds, say) that would change them.
    times = pl.select(pl.coalesce(whole, sound.floor().cast(pl.Int64, strict=False))).to_series()
    known = times.drop_nulls().sort()
    if not len(known):
        return times, bad
    middle = int(known[len(known) // 2])
    ticks = ticks_in_a_second(middle) or 1
    seconds = times // ticks
    other = pl.Series([False]).new_from_index(0, len(times))
    if EARLIEST <= middle // ticks < LATEST:
        other = ((seconds >= LATEST) | ((seconds < EARLIEST) & (times >= EARLIEST))).fill_null(False)
        advice = f"most rows are in {UNITS[ticks]}, and this one is not; expected one unit in all rows"
        note_rows(problems, table, position, other, "times in another unit than most", "timestamp", advice)
    late = (seconds >= LATEST).fill_null(False) & ~other
    expected = (
        "expected seconds since 1970, or milliseconds, microseconds or nanoseconds, or an ISO date; a column that is "
        "none of these is left out by --columns timestamp=-"
    )
    note_rows(problems, table, position, late, "times that no clock shows", "timestamp", expected)
    return seconds, bad | other | late


def _dates(
    table: Table, position: int, column: pl.Series, empty: pl.Series, problems: Problems, order: str | None
) -> tuple[pl.Series, pl.Series]:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    dates = read_dates(column.filter(~empty).to_list(), order)
    seconds = column.replace_strict({**dates.seconds, "": None}, return_dtype=pl.Int64)
    bad = seconds.is_null() & ~empty
    expected = "expected seconds as a number or an ISO date such as 2009-04-01 or 2009-04-01T12:00:00"
    note_rows(problems, table, position, bad, "times that are none", "timestamp", expected, shown=column)
    if dates.order is not None:
        name = table.name(position)
        words = "day/month/year" if dates.order == DAY_FIRST else "month/day/year"
        if dates.doubtful:
            row = (~empty).arg_max() or 0
            advice = (
                f"{table.place(row)}, column {name!r}: {column[row]!r} may be day/month/year or month/day/year, and no "
                f"row tells; expected --dates {DAY_FIRST} or --dates {MONTH_FIRST}"
            )
            shown = (f"{table.place(row)}: {column[row]!r}",)
            remedy = f"taken as {words}; --dates {MONTH_FIRST} takes them the other way"
            problems.add(
                Problem("dates whose day and month no row tells apart", int((~empty).sum()), shown, remedy, advice)
            )
        else:
            problems.note(f"dates in column {name!r} are {words} ({dates.decided_by})")
    return seconds, bad


def _empty(table: Table, position: int, column: pl.Series, name: str, problems: Problems) -> pl.Series | None:
    """[r] rows without a value, which are noted; None where no row has one."""
    empty = column == ""
    if bool(empty.all()):
        return None
    words = {"rating": "rows without a rating", "timestamp": "rows without a time"}[name]
    advice = "other rows have one; give all rows a value, or none"
    note_rows(problems, table, position, empty, words, f"no {name}", advice)
    return empty
