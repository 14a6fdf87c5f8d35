"""Read interactions from a file: text with any separator, Parquet or RecBole's .inter, plain or gzip."""

from __future__ import annotations

from collections.abc import Mapping
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
        columns: canonical name (user, item, rating, timestamp) to the source's column name, or number
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
    items = values.ids(table, where["item"][0], "item")
    times = values.timestamps(table, where["timestamp"], allow_negative_times) if "timestamp" in where else None
    data = Interactions.from_rows(
        name or name_of(path),
        values.ids(table, where["user"][0], "user"),
        items,
        rating=values.ratings(table, where["rating"][0]) if "rating" in where else None,
        timestamp=times,
        titles=_own_titles(table, items) if titles is None else read_titles(Path(titles), items),
    )
    return data if times is None else replace(data, clock=not count_rows(times))


def _own_titles(table: Table, items: IdArray) -> dict[Any, str] | None:
    """By item, from a column of the interactions that is called title; `name` may be that of a user."""
    header = table.header or []
    where = {
        key: place for key, place in locate_known(header, ("title",)).items() if bare_name(header[place]) != "name"
    }
    return titles_in_rows(items, table.frame.to_series(where["title"]).to_list()) if where else None


def name_of(path: Path) -> str:
    """The file's name without endings; for NAME/interactions.csv.gz it is NAME."""
    stem = path.name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    folder = path.resolve().parent.name
    return folder if stem == "interactions" and folder else stem
