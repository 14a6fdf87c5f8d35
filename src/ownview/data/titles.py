"""What people call the items: a file with columns item and title, optionally creator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ownview.base.errors import DataError
from ownview.base.shown import shown
from ownview.data.columns import locate_known, named
from ownview.data.interactions import IdArray
from ownview.data.tables import read_table


def read_titles(path: Path, items: IdArray) -> dict[Any, str]:
    """Titles by item id, typed as in `items`; 'Title — Creator' where the file has a creator.

    Of several creators (comma-separated) the first is kept. Items without title are left out, an item
    named twice keeps its first title, and titles of other items are ignored.
    """
    table = read_table(path, None, lambda row: True)
    header = table.header or []
    where = locate_known(header, ("item", "title", "creator"))
    for key in ("item", "title"):
        if key not in where:
            raise DataError(f"{path}: line 1: no {key} column; found {named(header)}; expected item,title")
    ids = table.frame.to_series(where["item"]).str.strip_chars().to_list()
    names = table.frame.to_series(where["title"]).to_list()
    creators = table.frame.to_series(where["creator"]).to_list() if "creator" in where else [""] * len(ids)
    labels = _labels(ids, names, creators)
    # Matched as text: one odd id in either file must not part 7 from '7'.
    return {item: labels[str(item)] for item in dict.fromkeys(items.tolist()) if str(item) in labels}


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
