"""Items that a file names and the data does not know: nobody has taken them yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ownview.base.errors import DataError
from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import Interactions
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import read_items


def with_untaken(data: Interactions, file: Path) -> Interactions:
    """The data with the items of a file that it does not have, behind its own and without a row.

    Args:
        data: m items that somebody has taken.
        file: columns item, title and any others, as for titles; items that the data has are left out.

    Raises:
        DataError: the file has no column of items, or none that is new.
    """
    table = read_table(file, None, lambda row: True)
    header = table.header or []
    where = locate_known(header, ("item",))
    if "item" not in where:
        raise DataError(f"{file}: line 1: no item column; found {named(header)}; expected item,title")
    known = {str(one) for one in data.items.tolist()}
    ids = [one for one in dict.fromkeys(table.column(where["item"]).to_list()) if one and one not in known]
    if not ids:
        raise DataError(f"{file}: names no item that {data.name} does not have; expected items nobody has taken yet")
    fresh = np.array(ids, dtype=object)
    found = read_items(file, fresh)
    new = ItemTable.aligned(found.columns, ids)
    titles = tuple(found.titles.get(one, one) for one in ids)
    old = tuple(data.title(item) for item in range(data.num_items))
    items = np.concatenate([data.items.astype(object), fresh])
    about = new.behind(data.num_items) if data.about is None else data.about.followed_by(new, len(ids))
    return replace(data, items=items, titles=old + titles, about=about)
