"""The items that a deployment recommends: a file with columns item and title, or those of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ownview.base.errors import DataError
from ownview.base.files import is_file
from ownview.base.items.item_table import ItemTable
from ownview.data.datasets.catalog import load
from ownview.data.interactions import IdArray
from ownview.data.reading.columns import locate_known
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import read_items


class Catalogue(NamedTuple):
    """ids: [m] of the items; titles: [m], or None; about: what else is known of them, or None."""

    ids: IdArray
    titles: tuple[str, ...] | None
    about: ItemTable | None


def read_catalogue(name_or_file: str, data_dir: Path | None = None) -> Catalogue:
    """The items of a file or a dataset. Of a dataset nothing else is looked at.

    A file with a column for users is a dataset; otherwise it is a catalogue, one row an item.
    """
    file = Path(name_or_file)
    if not is_file(file):
        data = load(name_or_file, data_dir=data_dir)
        return Catalogue(data.items, data.titles, data.about)
    table = read_table(file, None, lambda row: True)
    where = locate_known(table.header or [], ("user", "item", "title"))
    if "user" in where:
        data = load(file, data_dir=data_dir)
        return Catalogue(data.items, data.titles, data.about)
    if "item" not in where:
        raise DataError(f"{file}: line 1: no item column; found {', '.join(table.header or [])}; expected item,title")
    listed = [one.strip() for one in table.frame.to_series(where["item"]).to_list()]
    empty = next((row for row, one in enumerate(listed) if not one), None)
    if empty is not None:
        raise DataError(f"{file}: {table.place(empty)}: an item without an id; expected item,title")
    items = np.array(list(dict.fromkeys(listed)), dtype=object)
    if "title" not in where:
        return Catalogue(items, None, None)
    found = read_items(file, items)
    titles = tuple(found.titles.get(one, str(one)) for one in items.tolist())
    return Catalogue(items, titles, ItemTable.aligned(found.columns, items.tolist()))
