"""Columns that are plainly a time or a title by their values, under any name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from ownview.base.items.column_names import ALIASES, LIKELY_WORDS, TIME_WORDS, bare_name
from ownview.data.dates import EARLIEST, ticks_in_a_second
from ownview.data.reading.columns import REQUIRED, locate_known
from ownview.data.reading.date_forms import read_dates
from ownview.data.reading.problems import UNEVEN, Problems
from ownview.data.reading.string_table import Table

if TYPE_CHECKING:
    import polars as pl

_LOOKED_AT = 2000
"""Rows by which a column is judged."""

_AGREED = 0.98
"""Share of rows with their item's usual title, in a column of titles."""

_MANY = 20_000
"""Rows by which a proposal is made."""

_NO_IDS = ("order", "quantity", "event", "rating", "url", "image", "creator")
"""Columns that are proposed neither for people nor for things."""

_WIDEST = 15
"""Columns of which all pairs are looked at."""

_WIDE, _MOSTLY = 8, 0.9
"""Columns from which a table may have an item in each, and the share of its cells that are then empty or marks."""

_OF_ORDERS = (
    *("order", "purchase", "invoice", "event", "created", "sale", "sold"),
    *("bestell", "kauf", "commande", "achat", "pedido", "leih", "lieh", "loan", "borrow", "issue", "watched", "played"),
)


def time_columns(table: Table, unread: Sequence[int]) -> list[int]:
    """Columns of moments: of dates by their cells, or of seconds by their name; of several those of orders."""
    found = [place for place in unread if _is_time(table, place)]
    if len(found) > 1:
        named = [place for place in found if any(word in bare_name(table.name(place)) for word in _OF_ORDERS)]
        found = named or found
    return found


def with_its_date(table: Table, where: Mapping[str, Sequence[int]], columns: Mapping[str, str]) -> dict[str, list[int]]:
    """Date and time of day, where the column of times says hours alone and another one the day, as tills write them.

    Args:
        table: the rows.
        where: positions of the columns that are known.
        columns: the mapping that was asked for; a time that it names is taken as it is.
    """
    times = list(where.get("timestamp", ()))
    if len(times) != 1 or "timestamp" in columns or not _of_the_day(table.column(times[0])):
        return {}
    names = [bare_name(field) for field in table.header or ()]
    others = (names.index(one) for one in ALIASES["timestamp"] if one in names and names.index(one) != times[0])
    date = next(others, None)
    if date is None:
        return {}
    return {"timestamp": [date] if date in table.moments else [date, times[0]]}


def _of_the_day(column: pl.Series) -> bool:
    given = column.filter(column != "")[:_LOOKED_AT]
    return len(given) > 0 and bool(given.str.contains(r"^\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?$").all())


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


def advice(table: Table, problems: Problems) -> str:
    """What may help behind an error that no column is known for user or item: another shape, or two likely columns."""
    return _by_columns(table) or _likely_ids(table) or _by_lines(table, problems)


def _likely_ids(table: Table) -> str:
    """Two columns that may be user and item; empty where none are likely.

    Ids come again, and are neither times nor fractions nor sentences; a person has several things, and a thing several
    people. Names decide, then which have most values; beside a column that is known the other's name must tell.
    """
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    names = [bare_name(table.name(place)) for place in range(table.frame.width)]
    no_ids = {name for key in _NO_IDS for name in ALIASES[key]}
    columns = {place: table.column(place)[:_MANY] for place, name in enumerate(names) if name not in no_ids}
    header = table.header or []
    known = {**locate_known(header, REQUIRED)}
    if "item" not in known and (titles := locate_known(header, ("title",), but="name")):
        known["item"] = titles["title"]
    called = {place for place, column in columns.items() if "user" in known and _may_be_things(column)}
    likely = [place for place, column in columns.items() if place in called or _may_be_ids(table, place, column)]

    def fits(place: int, key: str) -> int:
        if key in known:
            return 1 if place == known[key] else -9
        by_word = {one: any(word in names[place] for word in LIKELY_WORDS[one]) for one in REQUIRED}
        by_value = 0 if place not in called else 1 if key == "item" else -9
        return 3 * by_word[key] - sum(by_word.values()) - bool(known) + by_value

    pairs: list[tuple[int, int, int, int]] = []
    for user, item in permutations({*likely[:_WIDEST], *known.values()} & columns.keys(), 2):
        distinct = [columns[place].n_unique() for place in (user, item)]
        fit = [fits(user, "user"), fits(item, "item")]
        several = pl.DataFrame({"user": columns[user], "item": columns[item]}).n_unique() > max(distinct)
        if several and (not known or min(fit) >= 0):
            pairs.append((sum(fit), sum(distinct), -user, -item))
    if not pairs:
        return ""
    user, item = (-place for place in max(pairs)[2:])
    named = shlex.quote(f"user={table.name(user)},item={table.name(item)}")
    return f"; perhaps --columns {named} (values such as {table.column(user)[0]!r} and {table.column(item)[0]!r})"


def _may_be_ids(table: Table, place: int, column: pl.Series) -> bool:
    given = column.filter(column != "")
    again = len(given) > given.n_unique() > 1
    return again and not _is_time(table, place) and not _words(column) and not given.str.contains(r"^-?\d+[.,]\d").all()


def _may_be_things(column: pl.Series) -> bool:
    """Whether a column holds words that come again and again: things without a number go by what they are called."""
    given = column.filter(column != "")
    return len(given) >= 2 * given.n_unique() > 2 and bool(_words(column))


def _by_columns(table: Table) -> str:
    """Whether a row is a person with an item in each column, and what makes rows of it."""
    rows, width = table.frame.height, table.frame.width
    if width < _WIDE or table.column(0).n_unique() < rows:
        return ""
    cells = [table.column(place) for place in range(1, width)]
    plain = sum(int(((one == "") | one.str.contains(r"^[xX✓]$|^\d+([.,]\d+)?$")).sum()) for one in cells)
    if plain < _MOSTLY * rows * (width - 1):
        return ""
    return (
        "; a person a row and an item a column? Expected rows of user, item and rating, as 'Unpivot columns' of Excel, "
        "polars' unpivot or pandas' melt make them"
    )


def _by_lines(table: Table, problems: Problems) -> str:
    """Whether a line is a basket, or the rows are one person's."""
    uneven = sum(one.count for one in problems.found if one.kind.startswith(UNEVEN))
    if uneven > table.frame.height / 3:
        return "; lines of many lengths: a basket a line says nothing of people; expected a row a person and item"
    if "user" in locate_known(table.header or [], ("user",)):
        return ""
    return "; one person's own history has no one to learn from: expected rows of many people, each with its person"


def _is_time(table: Table, place: int) -> bool:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    column = table.column(place)
    given = column.filter(column != "")[:_LOOKED_AT]
    if not len(given) or place in table.moments:
        return bool(len(given))
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

    given = pl.DataFrame({"item": items, "title": column}).filter(pl.col("title") != "", pl.col("item") != "")
    pairs = given.group_by("item", "title").len().group_by("item").agg(pl.col("len").max(), pl.col("title").first())
    agreed = int(pairs["len"].sum()) >= _AGREED * given.height
    distinct = pairs["title"].n_unique() >= 0.8 * pairs.height
    return agreed and distinct and pairs.height >= 2
