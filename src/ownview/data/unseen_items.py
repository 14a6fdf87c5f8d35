"""Items that a file names and the data does not know: items without interactions.

A model's folder may have such a file, `KEPT`: what is in it is offered wherever the model recommends.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from ownview.base.errors import DataError
from ownview.base.files import write_text
from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import Interactions
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import read_items

KEPT = "new_items.csv"


class NothingNewError(DataError):
    """A file of new items that names none."""


def with_untaken(data: Interactions, file: Path) -> Interactions:
    """The data with the items of a file that it does not have, behind its own and without a row.

    Args:
        data: m items with interactions.
        file: columns item, title and any others, as for titles; items that the data has are left out.

    Raises:
        DataError: the file has no column of items, or none that is new (`NothingNewError`).
    """
    table = read_table(file, None, lambda row: True)
    header = table.header or []
    where = locate_known(header, ("item",))
    if "item" not in where:
        raise DataError(f"{file}: line 1: no item column; found {named(header)}; expected item,title")
    known = {str(one) for one in data.items.tolist()}
    ids = [one for one in dict.fromkeys(table.column(where["item"]).to_list()) if one and one not in known]
    if not ids:
        raise NothingNewError(
            f"{file}: names no item that {data.name} does not have; expected items nobody has taken yet"
        )
    fresh = np.array(ids, dtype=object)
    found = read_items(file, fresh)
    new = ItemTable.aligned(found.columns, ids)
    titles = tuple(found.titles.get(one, one) for one in ids)
    old = tuple(data.title(item) for item in range(data.num_items))
    items = np.concatenate([data.items.astype(object), fresh])
    about = new.behind(data.num_items) if data.about is None else data.about.followed_by(new, len(ids))
    return replace(data, items=items, titles=old + titles, about=about)


def with_kept_text(data: Interactions, folder: Path) -> Interactions:
    """Rows whose items nothing is known of, with what a model's file of new items says of those that it names."""
    kept = folder / KEPT
    if data.about is not None or not kept.is_file():
        return data
    table = read_table(kept, None, lambda row: True)
    if not {str(one) for one in data.items.tolist()} & set(table.column(0).to_list()):
        return data
    found, ids = read_items(kept, data.items), data.items.tolist()
    titles = tuple(found.titles.get(one, str(one)) for one in ids) if found.titles else None
    return replace(data, titles=titles, about=ItemTable.aligned(found.columns, ids))


def keep_untaken(data: Interactions, folder: Path, file: Path | None = None) -> int:
    """Write a model's file of new items anew: those it has that are not taken meanwhile, and those of `file`.

    Args:
        data: of the model.
        folder: of the model.
        file: of more items, as for `with_untaken`; None for no more.

    Returns:
        How many new items there are.
    """
    kept, now = folder / KEPT, data
    for one in (kept if kept.is_file() else None, file):
        if one is None:
            continue
        try:
            now = with_untaken(now, one)
        except NothingNewError:
            if one == file:
                raise
    new = list(range(data.num_items, now.num_items))
    if not new:
        kept.unlink(missing_ok=True)
        return 0
    assert now.about is not None  # `with_untaken`
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["item", *now.about.columns])
    table.writerows(zip(now.items[new].tolist(), *now.about.select(new).columns.values(), strict=True))
    write_text(kept, text.getvalue())
    return len(new)
