"""What a file says of users: a column user and any others. It stays with them: no server sees any of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError
from ownview.base.items.item_table import ItemTable, require_columns
from ownview.data.interactions import Interactions
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.nulls import without_nulls
from ownview.data.reading.problems import Problems
from ownview.data.reading.tables import read_table
from ownview.data.reading.titles import require_narrow


class UserFile(NamedTuple):
    """What a file says of users: columns, joined by id, and what was understood and left out, a sentence each."""

    columns: ItemTable
    notes: tuple[str, ...]


def with_users(data: Interactions, path: Path) -> Interactions:
    """The data with what a file says of its users; see `read_users`."""
    found = read_users(path, data.users.tolist())
    return replace(data, about_users=found.columns, reading=(*data.reading, *found.notes))


def read_users(path: Path, users: Sequence[Any]) -> UserFile:
    """What a file says of these users, joined by id; rows of other users are left out, with a note.

    Raises:
        DataError: no column of users, an id twice, too many columns, or none of the users.
    """
    require_narrow(path)
    problems = Problems(path, tolerant=True)
    table = without_nulls(read_table(path, None, lambda row: True, problems), problems)
    header = [name.strip() for name in table.header or []]
    require_columns(str(path), header)
    where = locate_known(header, ("user",))
    if "user" not in where:
        raise DataError(f"{path}: line 1: no user column; found {named(header)}; expected user and others about users")
    columns = {name: table.column(place).to_list() for place, name in enumerate(header) if place != where["user"]}
    ids = table.column(where["user"]).to_list()
    about = ItemTable.joined(str(path), "user", {"user": ids, **columns}, users)
    others = len(set(ids) - set(map(str, users)))
    notes = [f"{path.name}: {one}" for one in problems.sentences()]
    notes += [f"{path.name}: {counted(others, 'user')} not in the data, left out"] if others else []
    return UserFile(about, tuple(notes))
