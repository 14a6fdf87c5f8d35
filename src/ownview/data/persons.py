"""A person whom a model has never seen: titles or ids that were given, as items of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ownview.base.errors import DataError
from ownview.data.interactions import IntArray
from ownview.data.matching import SEPARATOR, ItemNames, Match
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.reading import values
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import Table
from ownview.data.reading.tables import read_table
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Newcomer:
    """A person with a history, and nothing else.

    Args:
        history: what was understood, oldest first, every item once.
        times: [l] of each, in seconds; None where none were given.
    """

    history: tuple[Match, ...]
    times: IntArray | None = None

    def __repr__(self) -> str:
        return f"Newcomer({'; '.join(one.title for one in self.history)})"

    def question(self, split: Split) -> Question:
        """What a model is asked about this person: everything else, given the history.

        Where the data has times and none were given, the items count as had one second after the other at the
        end of the training data. Now is the time of the last one.
        """
        items = torch.tensor([one.position for one in self.history])
        known = Timeline(Ragged.one(items))
        if split.timeline.times is not None:
            end = int(split.timeline.times.values.max())
            times = np.arange(end - len(items) + 1, end + 1) if self.times is None else self.times
            known = Timeline(
                known.items, Ragged.one(torch.from_numpy(times.astype(np.int64))), torch.tensor([times[-1]])
            )
        nothing = Ragged(torch.zeros(2, dtype=torch.long), torch.zeros(0, dtype=torch.long))
        hidden = Ragged.one(items.sort().values)
        return Question(nothing, known, hidden, strangers=np.array(["a new person"], dtype=object), open=True)


def newcomer(said: str | Path | Sequence[object], names: ItemNames) -> Newcomer:
    """A new person from the titles or ids that were given.

    Args:
        said: titles or ids, oldest first; as one text they are parted by semicolons. A path is a file with a column
            item or title and, if need be, timestamp.
        names: of the items.
    """
    if isinstance(said, Path):
        return _from_file(said, names)
    listed = said.split(SEPARATOR) if isinstance(said, str) else [str(one) for one in said]
    listed = [one.strip() for one in listed if one.strip()]
    if not listed:
        raise DataError("history: is empty; expected titles or ids of items, oldest first, parted by semicolons")
    return _first_of_each([names.find(one) for one in listed], None)


def _from_file(path: Path, names: ItemNames) -> Newcomer:
    ending = Path(path.name.removesuffix(".gz")).suffix
    table = read_table(path, "\t" if ending == ".tsv" else ",", lambda row: True)
    header = table.header or []
    where = locate_known(header, ("item", "title", "user", "timestamp"))
    if "item" not in where and "title" not in where:
        raise DataError(f"{path}: line 1: no item or title column; found {named(header)}; expected item,timestamp")
    if "user" in where and len(people := table.frame.to_series(where["user"]).unique().sort().to_list()) > 1:
        raise DataError(f"{path}: column {header[where['user']]}: found {named(people)}; expected one person")
    column = where["item"] if "item" in where else where["title"]
    found = []
    for row, text in enumerate(table.frame.to_series(column).to_list()):
        try:
            found.append(names.find(text, ids_first="item" in where))
        except DataError as error:
            raise DataError(f"{path}: {table.place(row)}: {error}") from None
    times = _times(table, where["timestamp"]) if "timestamp" in where else None
    if times is None:
        return _first_of_each(found, None)
    order = np.argsort(times, kind="stable")
    return _first_of_each([found[place] for place in order], times[order])


def _times(table: Table, position: int) -> IntArray | None:
    problems = Problems(table.path)
    column = values.timestamps(table, [position], False, problems)
    problems.require_none()
    return None if column is None else values.kept_times(column, ~column.bad)


def _first_of_each(found: list[Match], times: IntArray | None) -> Newcomer:
    """An item that comes again counts where it first came."""
    seen: dict[int, int] = {}
    for place, one in enumerate(found):
        seen.setdefault(one.position, place)
    kept = list(seen.values())
    return Newcomer(tuple(found[place] for place in kept), None if times is None else times[kept])
