"""What a file says of items: a column item, and title, creator or any others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from ownview.base.display.amounts import counted
from ownview.base.display.shown import shown
from ownview.base.errors import DataError
from ownview.base.items.item_table import MOST_COLUMNS, ByItem, require_columns
from ownview.data.interactions import IdArray
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.nulls import without_nulls
from ownview.data.reading.problems import Problems
from ownview.data.reading.source_text import read_bytes
from ownview.data.reading.tables import read_table


class ItemFile(NamedTuple):
    """What a file says of items.

    titles: by item id, what people call it.
    columns: by name and item id, everything that the file says of items, titles included.
    note: how items were found whose ids the two files write differently, or empty.
    """

    titles: dict[Any, str]
    columns: ByItem
    note: str = ""


def read_items(path: Path, items: IdArray) -> ItemFile:
    """Titles and columns by item id, typed as in `items`; a title is 'Title — Creator' where the file has a creator.

    A file without titles has columns about items all the same; people see ids then. One whose first line begins with an
    item of the data has no header: item and title stand first.

    Of several creators (comma-separated) the title has the first. An item that is named twice keeps its first row with
    a title, and rows of other items are ignored. Where a spreadsheet took the zeros in front of ids away ('00042' is
    42, or 42.0) in one of the files, items are matched without them, if no two become one.
    """
    require_narrow(path)
    problems = Problems(path, tolerant=True)
    known = set(map(str, items.tolist()))
    table = without_nulls(read_table(path, None, lambda row: row[0].strip() not in known, problems), problems)
    width = table.frame.width
    header = table.header or ["item", "title", *(f"column {place}" for place in range(2, width))][:width]
    require_columns(str(path), header)
    where = locate_known(header, ("item", "title", "creator"))
    if "item" not in where:
        raise DataError(f"{path}: line 1: no item column; found {named(header)}; expected item,title")
    ids = table.column(where["item"]).to_list()
    named_rows = [bool(name) for name in table.column(where.get("title", where["item"])).to_list()]
    first: dict[str, int] = {}
    for row, one in enumerate(ids):
        if one not in first or (named_rows[row] and not named_rows[first[one]]):
            first[one] = row
    wanted = list(dict.fromkeys(items.tolist()))
    rows, note = _matched(path, first, wanted)
    if not rows:
        raise DataError(
            f"{path}: names none of the {len(wanted):,} items, such as {items[0]!s}; found {next(iter(first))!r} in "
            "its column of items; expected the ids of the data"
        )
    untitled = "" if "title" in where else f"{path.name} has no column of titles: items are called by their ids"
    read = (f"{path.name}: {one}" for one in problems.sentences())
    note = "; ".join(filter(None, (*read, note, untitled, _notes_of_rows(path, len(ids), len(first), len(rows)))))
    columns = {
        name.strip(): {item: values[row] for item, row in rows.items() if values[row]}
        for place, name in enumerate(header)
        if place != where["item"]
        for values in (table.column(place).to_list(),)
    }
    creators = columns[header[where["creator"]].strip()] if "creator" in where else {}
    titles = columns[header[where["title"]].strip()] if "title" in where else {}
    return ItemFile({item: _label(name, creators.get(item, "")) for item, name in titles.items()}, columns, note)


def require_narrow(path: Path) -> None:
    """Refuse a first line of far too many columns before it is made a table, which takes long and much memory."""
    line = read_bytes(path).split(b"\n", 1)[0]
    columns = 1 + max(line.count(one) for one in (b",", b";", b"\t", b"|"))
    if columns > 10 * MOST_COLUMNS:
        require_columns(str(path), [""] * columns)


def _notes_of_rows(path: Path, rows: int, named_items: int, found: int) -> str:
    """What a reader should know of rows that were not used, or nothing."""
    notes = []
    if rows > named_items:
        again = counted(rows - named_items, "row")
        notes.append(f"{path.name}: {again} about an item that stands above; the first with a title counts")
    if named_items > found:
        notes.append(f"{path.name}: {counted(named_items - found, 'item')} not in the data, left out")
    return "; ".join(notes)


def _matched(path: Path, first: dict[str, int], items: list[Any]) -> tuple[dict[Any, int], str]:
    """By item, the row of the file that is about it; and how ids were matched that differ, or nothing."""
    # Matched as text: one odd id in either file must not part 7 from '7'.
    found = {item: first[str(item)] for item in items if str(item) in first}
    missing = [item for item in items if item not in found]
    same = {str(item) for item in found}
    others = _without_zeros([one for one in first if one not in same])
    wanted = _without_zeros([str(item) for item in missing])
    matched = {item: first[others[short]] for item in missing if (short := _short(str(item))) in others.keys() & wanted}
    if not matched:
        return found, ""
    note = f"titles of {counted(len(matched), 'item')} were found without the zeros in front of ids, or '.0' behind"
    example = next(iter(matched))
    return found | matched, f"{note}: {example!s} is {others[_short(str(example))]} in {path.name}"


def _short(text: str) -> str:
    """An id without the zeros in front, and without the '.0' that a spreadsheet puts behind."""
    return re.sub(r"^(\d+)\.0$", r"\1", text).lstrip("0") or "0"


def _without_zeros(ids: list[str]) -> dict[str, str]:
    """Ids by their short form, where no two have the same."""
    shorts: dict[str, list[str]] = {}
    for one in ids:
        shorts.setdefault(_short(one), []).append(one)
    return {short: several[0] for short, several in shorts.items() if len(several) == 1}


def titles_in_rows(items: IdArray, names: list[str]) -> dict[Any, str]:
    """Titles by item id from rows of interactions, [N] each; an item keeps its first, those without are left out."""
    ids = items.tolist()
    return _labels(ids, [name or "" for name in names], [""] * len(ids))


def _labels(ids: list[Any], names: list[str], creators: list[str]) -> dict[Any, str]:
    labels: dict[Any, str] = {}
    for item, name, creator in zip(ids, names, creators, strict=True):
        if item not in labels and name.strip():
            labels[item] = _label(name, creator)
    return labels


def _label(title: str, creators: str) -> str:
    first = shown(creators.partition(",")[0].strip())
    label = shown(title.strip()).replace("\n", " ")
    return f"{label} — {first}" if first else label
