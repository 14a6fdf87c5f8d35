"""What a file says of users: a column user and any others. It stays with them: no server sees any of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError
from ownview.base.items.item_table import ItemTable, require_columns
from ownview.data.interactions import Interactions
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.problems import Problems
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import require_narrow


def with_users(data: Interactions, path: Path) -> Interactions:
    """The data with what a file says of its users, joined by id; rows of other users are left out, with a note.

    Raises:
        DataError: no column of users, an id twice, too many columns, or no user of the data.
    """
    require_narrow(path)
    problems = Problems(path, tolerant=True)
    table = read_table(path, None, lambda row: True, problems)
    header = [name.strip() for name in table.header or []]
    require_columns(str(path), header)
    where = locate_known(header, ("user",))
    if "user" not in where:
        raise DataError(f"{path}: line 1: no user column; found {named(header)}; expected user and others about users")
    columns = {name: table.column(place).to_list() for place, name in enumerate(header) if place != where["user"]}
    ids = table.column(where["user"]).to_list()
    about = ItemTable.joined(str(path), "user", {"user": ids, **columns}, data.users.tolist())
    others = len(set(ids) - {str(one) for one in data.users.tolist()})
    told = [f"{path.name}: {one}" for one in problems.sentences()]
    told += [f"{path.name}: {counted(others, 'user')} not in the data, left out"] if others else []
    return replace(data, about_users=about, reading=(*data.reading, *told))
