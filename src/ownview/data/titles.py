"""What people call the items: a file with columns item and title, optionally creator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from ownview.base.amounts import counted
from ownview.base.errors import DataError
from ownview.base.shown import shown
from ownview.data.columns import locate_known, named
from ownview.data.interactions import IdArray
from ownview.data.problems import Problems
from ownview.data.tables import read_table


class Titles(NamedTuple):
    """titles: by item id; note: how items were found whose ids the two files write differently, or empty."""

    titles: dict[Any, str]
    note: str = ""


def read_titles(path: Path, items: IdArray) -> Titles:
    """Titles by item id, typed as in `items`; 'Title — Creator' where the file has a creator.

    Of several creators (comma-separated) the first is kept. Items without title are left out, an item
    named twice keeps its first title, and titles of other items are ignored. Where a spreadsheet took the zeros in
    front of ids away ('00042' is 42, or 42.0) in one of the files, items are matched without them, if no two become
    one.
    """
    table = read_table(path, None, lambda row: True, Problems(path, tolerant=True))
    header = table.header or []
    where = locate_known(header, ("item", "title", "creator"))
    for key in ("item", "title"):
        if key not in where:
            raise DataError(f"{path}: line 1: no {key} column; found {named(header)}; expected item,title")
    ids = table.column(where["item"]).to_list()
    names = table.frame.to_series(where["title"]).to_list()
    creators = table.frame.to_series(where["creator"]).to_list() if "creator" in where else [""] * len(ids)
    labels = _labels(ids, names, creators)
    # Matched as text: one odd id in either file must not part 7 from '7'.
    distinct = list(dict.fromkeys(items.tolist()))
    found = {item: labels[str(item)] for item in distinct if str(item) in labels}
    missing = [item for item in distinct if item not in found]
    others = _without_zeros([one for one in labels if one not in {str(item) for item in found}])
    wanted = _without_zeros([str(item) for item in missing])
    matched = {
        item: labels[others[short]] for item in missing if (short := _short(str(item))) in others.keys() & wanted
    }
    if not matched:
        return Titles(found)
    told = f"titles of {counted(len(matched), 'item')} were found without the zeros in front of ids, or '.0' behind"
    example = next(iter(matched))
    return Titles(found | matched, f"{told}: {example!s} is {others[_short(str(example))]} in {path.name}")


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
