"""Read interactions: text with any separator, JSON Lines, Excel, Parquet; packed by gzip, or a folder of such."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from ownview.base.arguments import kinds_checked
from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, SettingError
from ownview.base.items.column_names import ALIASES, SESSIONS, bare_name
from ownview.base.platforms import give_back_freed_memory
from ownview.data.dates import count_rows
from ownview.data.interactions import IdArray, Interactions
from ownview.data.reading import values
from ownview.data.reading.columns import LEFT_OUT, REQUIRED, MissingColumnError, has_header, locate, locate_known
from ownview.data.reading.date_forms import ORDERS
from ownview.data.reading.folders import folder_tables
from ownview.data.reading.nulls import without_nulls
from ownview.data.reading.orders import order_column, with_whole_orders
from ownview.data.reading.problems import Problems
from ownview.data.reading.purchases import kept_quantities, status_of_orders, taken
from ownview.data.reading.recognised import advice, time_columns, title_column, with_its_date
from ownview.data.reading.string_table import Table
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import ItemFile, read_items, titles_in_rows
from ownview.data.reading.user_tables import with_users

if TYPE_CHECKING:
    import polars as pl

ColumnPlaces = dict[str, list[int]]


class ReadingOptions(TypedDict, total=False):
    """How `read` reads a source.

    Args:
        columns: canonical name (user, item, rating, timestamp, title) to the source's column name, or number
            counted from 0. A timestamp in parts is `year+month+day`.
        separator: '::' or one character; detected where None.
        encoding: of text, as Python names it; detected where None.
        sheet: of a workbook of Excel; where None, the only one that names user and item.
        dates: `day-first` or `month-first` for 3/4/2010; detected where None.
        events: kinds of events that count, where there is such a column; all that take nothing back where empty.
        min_rating: leave out rows rated below it.
        tolerant: leave out rows that are not sound, and go by the likelier of two readings, instead of refusing.
    """

    columns: Mapping[str, str] | None
    separator: str | None
    encoding: str | None
    sheet: str | None
    dates: str | None
    events: Sequence[str]
    min_rating: float | None
    tolerant: bool


_OF_ROWS = ("quantity", "event", "cancelled")
_OF_ITEMS = ("url", "image")
"""Columns that may stand in the interactions, beside those that are located for every source."""

_GUESTS, _OFTEN = 0.05, 10
"""Share of all rows, and times what people usually have, from which user 0 looks like all guests of a shop."""

_TOLERABLE = 0.5
"""Share of rows without a user or an item beyond which a file is taken for misread."""


@kinds_checked("options")
def read(
    path: str | Path,
    *,
    name: str | None = None,
    titles: Path | None = None,
    users: Path | None = None,
    allow_negative_times: bool = False,
    **options: Unpack[ReadingOptions],
) -> Interactions:
    """Read interactions from a file or a folder of files; the kind is detected from name and content.

    Ids stay what they are in the source; rating and timestamp are None where there is no such column or
    it is empty. Timestamps that count rows tell their order and no more. Files without header have the
    order user, item, rating, timestamp. Rows without a user or an item, returns and cancelled orders are left
    out. `Interactions.reading` says what was understood and left out.

    Args:
        path: the file, or a folder whose files have the same columns.
        name: what reports call the data; the file's name (or its folder's) where None.
        titles: file with columns item and title, optionally creator and any others; where None, a title column of the
            file itself.
        users: file with a column user and any others about users, which stays with them.
        allow_negative_times: accept times before 1970.
        options: how the file is read, see `ReadingOptions`.

    Raises:
        DataError: names the file, the line and the column of the first thing that is wrong; an `UnsoundFileError`
            lists all where a tolerant reader could go on.
    """
    dates = options.get("dates")
    if dates is not None and dates not in ORDERS:
        raise SettingError(f"dates: found {dates!r}; expected {' or '.join(ORDERS)}")
    data = _interactions(Path(path), name, titles, options, allow_negative_times=allow_negative_times)
    give_back_freed_memory()  # the table of text took several times what is left of it
    return data if users is None else with_users(data, users)


def _interactions(
    path: Path, name: str | None, titles: Path | None, options: ReadingOptions, *, allow_negative_times: bool
) -> Interactions:
    columns, dates = options.get("columns"), options.get("dates")
    problems = Problems(path, options.get("tolerant", False))
    table, own_titles = _table(path, options, problems)
    titles, events = titles or own_titles, options.get("events", ())
    table = without_nulls(table, problems)
    where = _located(table, columns, titles is not None, problems)
    where |= status_of_orders(table, where, events) | with_its_date(table, where, columns or {})
    table = with_whole_orders(_called_by_titles(table, where, problems), where, problems)
    table = table.keeping(_with_ids(table, where, problems))
    if table.frame.height:
        table = table.keeping(taken(table, where, events, problems))
    if not table.frame.height:
        problems.require_sound()
        raise DataError(f"{path}: no row is left of what could be read: {'; '.join(problems.sentences())}")
    rating, rated = _rating(table, where, options.get("min_rating"), problems)
    times = (
        values.timestamps(table, where["timestamp"], allow_negative_times, problems, dates)
        if "timestamp" in where
        else None
    )
    problems.require_sound()
    kept = rated if times is None else rated & ~times.bad
    if not bool(kept.any()):
        raise DataError(f"{path}: no row is left of what could be read: {'; '.join(problems.sentences())}")
    items = values.ids(table.column(where["item"][0]).filter(kept))
    stamp = None if times is None else values.kept_times(times, kept)
    about = _about_items(table, where, items, kept, titles, problems)
    data = Interactions.from_rows(
        name or name_of(path),
        values.ids(table.column(where["user"][0]).filter(kept)),
        items,
        rating=None if rating is None else values.kept_ratings(rating, kept),
        timestamp=stamp,
        quantity=None if "quantity" not in where else kept_quantities(table, where["quantity"][0], kept),
        titles=None if about is None else about.titles or None,
        about=None if about is None else about.columns,
    )
    _note_guests(data, problems)
    return replace(
        data,
        clock=stamp is None or not count_rows(stamp),
        unread=_unread(table, where),
        reading=problems.sentences(),
    )


def _table(path: Path, options: ReadingOptions, problems: Problems) -> tuple[Table, Path | None]:
    def read_file(one: Path, problems: Problems = problems) -> Table:
        return read_table(
            one,
            options.get("separator"),
            lambda row: has_header(row, options.get("columns")),
            problems,
            options.get("encoding"),
            options.get("sheet"),
        )

    return folder_tables(path, read_file, problems) if path.is_dir() else (read_file(path), None)


def _located(table: Table, columns: Mapping[str, str] | None, has_titles: bool, problems: Problems) -> ColumnPlaces:
    """Positions of all columns that are looked at: named, known by name, or plain by what stands in them."""
    try:
        where = locate(table.path, table.header, table.frame.width, columns)
    except MissingColumnError as error:
        raise DataError(f"{error}{advice(table, problems)}") from None
    header = table.header or []
    named = set(columns or {})
    where = _in_usual_order(table, where, problems) if not columns and not header else where
    known = locate_known(header, (*_OF_ROWS, *_OF_ITEMS, "order"))
    for key, found in (known | {"order": order_column(header, known)}).items():
        if found is not None and [found] not in where.values():
            where[key] = [found]
    if not has_titles and "title" not in named:
        where |= _own_title(header, where)
    free = [place for place in range(table.frame.width) if [place] not in where.values()]
    if "timestamp" not in where and "timestamp" not in named:
        times = time_columns(table, free)
        names = [table.name(place) for place in times]
        if len(times) == 1:
            where["timestamp"] = times
            problems.note(f"column {names[0]!r} holds times and is taken for the time")
            free.remove(times[0])
        elif times:
            listed = " and ".join(map(repr, names[:3]))
            problems.note(
                f"columns {listed} hold times and nothing tells which is meant, so none is read; "
                f"--columns timestamp={shlex.quote(names[0])} takes one"
            )
    if not has_titles and "title" not in where and (columns or {}).get("title") != LEFT_OUT:
        found = title_column(table, where["item"][0], free)
        if found is not None:
            where["title"] = [found]
            problems.note(f"column {table.name(found)!r} names the items and is taken for their titles")
    _note_instead({key: header[where[key][0]] for key in REQUIRED if header and key not in named}, problems)
    return where


def _note_instead(names: Mapping[str, str], problems: Problems) -> None:
    """Take note of visits that count as users, or titles as items, where there is no column of these."""
    user, item = names.get("user", ""), names.get("item", "")
    if bare_name(user) in SESSIONS:
        problems.note(f"there is no column of people: every value of {user!r}, a visit, counts as a user")
    if bare_name(item) in ALIASES["title"]:
        problems.note(f"there is no column of item ids: column {item!r} names the items")


def _in_usual_order(table: Table, where: ColumnPlaces, problems: Problems) -> ColumnPlaces:
    """Positions where no column has a name: user, item and rating, unless the third are times; else refused."""
    if time_columns(table, where["item"]):
        raise DataError(
            f"{table.path}: line 1: no header, and the second column holds times ({table.column(1)[0]!r}); expected "
            "user, item, rating, timestamp, or column numbers such as user=0,timestamp=1,item=2"
        )
    if "rating" not in where:
        return where
    place = where["rating"][0]
    if "timestamp" not in where and time_columns(table, [place]):
        return {key: places for key, places in where.items() if key != "rating"} | {"timestamp": [place]}
    given = table.column(place).filter(table.column(place) != "")
    if 2 * values.numbers(given).null_count() > len(given):
        raise DataError(
            f"{table.path}: line 1: no header, and the third column holds no ratings ({given[0]!r}); expected user, "
            f"item, rating, timestamp, or column numbers such as user=0,item=1{advice(table, problems)}"
        )
    return where


def _own_title(header: Sequence[str], where: ColumnPlaces) -> ColumnPlaces:
    """Where a column of the interactions is called title, if one is; `name` may be that of a user."""
    found = locate_known(header, ("title",), but="name")
    return {key: [place] for key, place in found.items() if [place] not in where.values()}


def _called_by_titles(table: Table, where: ColumnPlaces, problems: Problems) -> Table:
    """The table with an item's title for its id where that is empty, as with goods without a number of the shop."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    if "title" not in where:
        return table
    item = where["item"][0]
    ids, titles = table.column(item), table.column(where["title"][0])
    count = int(((ids == "") & (titles != "")).sum())
    if not count:
        return table
    problems.note(f"{counted(count, 'row')} without an item id: the item goes by its title")
    called = pl.select(pl.when(ids == "").then(titles).otherwise(ids)).to_series()
    return replace(table, frame=table.frame.with_columns(called.alias(table.frame.columns[item])))


def _with_ids(table: Table, where: ColumnPlaces, problems: Problems) -> pl.Series:
    """[r] rows with user and item; the others are noted, and refused where they are most."""
    kept = None
    for key, article in (("user", "a"), ("item", "an")):
        position = where[key][0]
        missing = table.column(position) == ""
        refused = int(missing.sum()) > _TOLERABLE * len(missing)
        words = f"no {key}", "expected an id in every row"
        values.note_rows(problems, table, position, missing, f"rows without {article} {key}", *words, refused=refused)
        kept = ~missing if kept is None else kept & ~missing
    assert kept is not None
    return kept


def _rating(
    table: Table, where: ColumnPlaces, least: float | None, problems: Problems
) -> tuple[values.Column | None, pl.Series]:
    """The ratings, and [r] the rows that stay by them.

    Where no rating is asked for, ratings that are none cost the column and no row.
    """
    everything = table.column(where["item"][0]) != ""
    mine = Problems(table.path, problems.tolerant)
    rating = values.ratings(table, where["rating"][0], mine) if "rating" in where else None
    if least is None:
        spoilt = rating is not None and bool(rating.bad.any())
        remedy = "the column of ratings is not read"
        problems.found += [replace(one, remedy=remedy) if spoilt else one for one in mine.found]
        return (None if spoilt else rating), everything
    if rating is None:
        raise DataError(f"{table.path}: has no ratings, and --min-rating asks for {least:g} or more")
    problems.found += mine.found
    low = (rating.values < least).fill_null(False)
    values.note_rows(
        problems, table, where["rating"][0], low, f"rows rated below {least:g}", "rating", "", refused=False
    )
    return rating, everything & ~low & ~rating.bad


def _about_items(
    table: Table, where: ColumnPlaces, items: IdArray, kept: pl.Series, titles: Path | None, problems: Problems
) -> ItemFile | None:
    """Titles and columns by item: of a file, or of the interactions' own column."""
    if titles is not None:
        found = read_items(Path(titles), items)
        if found.note:
            problems.note(found.note)
        return found
    if "title" not in where:
        return None
    columns = {
        key: titles_in_rows(items, table.column(where[key][0]).filter(kept).to_list())
        for key in ("title", *_OF_ITEMS)
        if key in where
    }
    return ItemFile(columns["title"], columns)


def _note_guests(data: Interactions, problems: Problems) -> None:
    """Take note where user 0 has a large share of all rows: shops write 0 for who has no account."""
    rows = [
        int(count) for user, count in zip(data.users.tolist(), data.counts.tolist(), strict=True) if str(user) == "0"
    ]
    if rows and rows[0] >= max(_GUESTS * len(data), _OFTEN * float(np.median(data.counts))):
        problems.note(
            f"user '0' has {rows[0]:,} of {len(data):,} rows: where 0 stands for all guests, leave their rows out "
            "of the file, for they count as one person"
        )


def _unread(table: Table, where: ColumnPlaces) -> tuple[str, ...]:
    taken_places = {place for places in where.values() for place in places}
    return tuple(name.strip() for place, name in enumerate(table.header or ()) if place not in taken_places)


def name_of(path: Path) -> str:
    """The file's name without endings; for NAME/interactions.csv.gz it is NAME."""
    if path.is_dir():
        return path.resolve().name or "data"
    stem = path.name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    folder = path.resolve().parent.name
    return folder if stem == "interactions" and folder else stem
