"""Read interactions from a file: text with any separator, Parquet or RecBole's .inter, plain or gzip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.data import values
from ownview.data.columns import bare_name, has_header, locate, locate_known
from ownview.data.dates import count_rows
from ownview.data.interactions import IdArray, Interactions
from ownview.data.tables import Table, read_table
from ownview.data.titles import read_titles, titles_in_rows


def read(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    separator: str | None = None,
    titles: Path | None = None,
    allow_negative_times: bool = False,
) -> Interactions:
    """Read one file of interactions; the kind of file is detected from its name and content.

    Ids stay what they are in the source; rating and timestamp are None where there is no such column or
    it is empty. Timestamps that count rows tell their order and no more. Files without header have the
    order user, item, rating, timestamp.

    Args:
        path: the file.
        columns: canonical name (user, item, rating, timestamp, title) to the source's column name, or number
            counted from 0. A timestamp in parts is `year+month+day`.
        name: what reports call the data; the file's name (or its folder's) where None.
        separator: '::' or one character; detected where None.
        titles: file with columns item and title, optionally creator; where None, a title column of the file itself.
        allow_negative_times: accept times before 1970.

    Raises:
        DataError: names the file, the line and the column of the first thing that is wrong.
    """
    path = Path(path)
    table = read_table(path, separator, lambda row: has_header(row, columns))
    where = locate(path, table.header, table.frame.width, columns)
    if titles is None and "title" not in (columns or {}):
        where |= _own_title(table)
    items = values.ids(table, where["item"][0], "item")
    times = values.timestamps(table, where["timestamp"], allow_negative_times) if "timestamp" in where else None
    data = Interactions.from_rows(
        name or name_of(path),
        values.ids(table, where["user"][0], "user"),
        items,
        rating=values.ratings(table, where["rating"][0]) if "rating" in where else None,
        timestamp=times,
        titles=_titles_in(table, where, items) if titles is None else read_titles(Path(titles), items),
    )
    taken = {place for places in where.values() for place in places}
    unread = tuple(name.strip() for place, name in enumerate(table.header or ()) if place not in taken)
    return replace(data, clock=times is None or not count_rows(times), unread=unread)


def _own_title(table: Table) -> dict[str, list[int]]:
    """Where a column of the interactions is called title, if one is; `name` may be that of a user."""
    header = table.header or []
    found = locate_known(header, ("title",))
    return {key: [place] for key, place in found.items() if bare_name(header[place]) != "name"}


def _titles_in(table: Table, where: Mapping[str, Sequence[int]], items: IdArray) -> dict[Any, str] | None:
    """By item, from the interactions' own column."""
    return titles_in_rows(items, table.frame.to_series(where["title"][0]).to_list()) if "title" in where else None


def name_of(path: Path) -> str:
    """The file's name without endings; for NAME/interactions.csv.gz it is NAME."""
    stem = path.name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    folder = path.resolve().parent.name
    return folder if stem == "interactions" and folder else stem
