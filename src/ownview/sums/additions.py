"""What happens to people's rows in a store: new ones come, stores are merged, everybody is added up once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from ownview.base.errors import DataError, OutputError
from ownview.data.interactions import IntArray, Interactions
from ownview.sums.arrays import Arrays
from ownview.sums.blocks import Axes, Block, Blocks
from ownview.sums.histories import History, about_items
from ownview.sums.journal import Contribution
from ownview.sums.store import Items, Snapshot, Store
from ownview.sums.summing import Summing


@dataclass(frozen=True)
class Additions:
    """What some rows came to.

    Args:
        rows: that are new.
        known: that were there already, and count once.
        people: whose history changed.
        new_people: of them, those who were not there.
        new_items: that had no rows.
    """

    rows: int
    known: int
    people: int
    new_people: int
    new_items: int

    def sentence(self) -> str:
        """For people."""
        return (
            f"{self.rows:,} new rows of {self.people:,} people ({self.new_people:,} of them new) with "
            f"{self.new_items:,} new items; {self.known:,} rows were known"
        )


def as_people(data: Interactions, place: Mapping[str, int], first: int = 0) -> dict[str, History]:
    """Everybody's rows; `place` by item id, `first` the number of the first row."""
    places = np.array([place[str(item)] for item in data.items.tolist()], dtype=np.int64)
    found = {}
    for k, name in enumerate(data.users.tolist()):
        here = data.of(k)
        times = None if data.timestamp is None else data.timestamp[here].copy()
        found[str(name)] = History(places[data.item[here]], times, first + data.row[here])
    return found


def update(store: Store, data: Interactions, source: str, budget: float = 0.0) -> Additions:
    """Add rows that are not there yet: of people who were there, and of new ones, with old items and new ones.

    Raises:
        DataError: the rows have no times, and the store's have.
    """
    timed = store.agreement.order == "times" or any(_timed(store))
    if timed and data.timestamp is None:
        raise DataError(f"{source}: has no times, and the model's rows have; expected a column timestamp")
    kept = store.journal.items()
    place = {item: where for where, (item, _) in kept.items()}
    free = _free(kept)
    new: dict[int, tuple[str, dict[str, str]]] = {}
    for item, about in about_items(data):
        if item not in place:
            place[item] = where = next(free)
            new[where] = (item, about)
    changed, rows, newcomers = {}, 0, 0
    for name, one in as_people(data, place, store.journal.state().rows).items():
        known = store.history(name)
        before = History.empty(timed=timed) if known is None else known
        after = before.plus(one if timed else one._replace(times=None))
        if len(after.places) > len(before.places):
            changed[name] = after
            rows += len(after.places) - len(before.places)
            newcomers += known is None
    held = {where for one in changed.values() for where in one.places.tolist()}
    new = {where: entry for where, entry in new.items() if where in held}
    if changed:
        store.put(changed, new, budget)
    return Additions(rows, len(data) - rows, len(changed), newcomers, len(new))


def _timed(store: Store) -> list[bool]:
    rows = store.journal.run("SELECT history FROM people LIMIT 1")
    return [History.unpacked(bytes(row[0])).times is not None for row in rows]


def _free(items: Items) -> Iterator[int]:
    """Places that no item has, the lowest first: cells of an item that went are 0 again."""
    return (place for place in count() if place not in items)


def merge(store: Store, other: Snapshot, theirs: Store) -> Additions:
    """Add another store of the same agreement; a person in both counts once, with the rows of both.

    Raises:
        OutputError: another agreement, or a contribution there that counts and has no history: items have other places
            here, so that its sender could not take it out any more.
    """
    if apart := store.agreement.difference(theirs.agreement):
        raise OutputError(f"{theirs.folder}: is of another agreement: {apart}; nothing was added")
    alone = _taken_out_there(store, theirs)
    kept = store.journal.items()
    place, free = {item: where for where, (item, _) in kept.items()}, _free(kept)
    new: dict[int, tuple[str, dict[str, str]]] = {}
    for item, about in other.items.values():
        if item not in place:
            place[item] = where = next(free)
            new[where] = (item, about)
    moved = {where: place[item] for where, (item, _) in other.items.items()}
    room = max(store.arrays.items, max(place.values(), default=0) + 1)
    summing = Summing.of(store.agreement, store.agreed, room)
    first = store.journal.state().rows
    came = {name: _moved_history(one, moved, first) for name, one in other.people.items()}
    both = {name: known for name in came if (known := store.history(name)) is not None}
    final = {name: both[name].plus(one) if name in both else one for name, one in came.items()}
    ids = {where: item for item, where in place.items()}
    taken = theirs.summing.each(
        {name: other.people[name] for name in both}, {where: item for where, (item, _) in other.items.items()}
    )
    parts, made = [], {}
    for (_, hers), (_, before), (name, after) in zip(
        taken, summing.each(both, ids), summing.each({name: final[name] for name in both}, ids), strict=True
    ):
        parts.append(summing.change({}, _moved(hers, summing.axes, theirs.arrays.items, room, moved)))
        parts.append(summing.change(after, before))
        made[name] = summing.digest(after)
    others = {name: one for name, one in final.items() if name not in both}
    made |= {name: summing.digest(one) for name, one in summing.each(others, ids)}

    def add(arrays: Arrays) -> None:
        to = np.array([moved[where] for where in other.places.tolist()], dtype=np.int64)
        for name, (rows, columns) in summing.axes.items():
            place = np.ix_(rows.of(to, room), columns.of(to, room))
            arrays.values[name][place] = arrays.bounded(name, arrays.values[name][place] + other.sums[name])

    def record() -> None:
        store.journal.note_items(new)
        for line in alone:
            store.journal.note(line.id, line.digest, line.budget, taken_out=True)
        store.journal.note_people(both, final, made, 0.0)
        rows = max((int(one.rows.max()) + 1 for one in final.values() if len(one.rows)), default=0)
        store.journal.set_state(rows=max(first, rows))

    store.change_all(parts, add, record, summing)
    rows = sum(len(one.places) for one in came.values())
    fresh = sum(len(final[name].places) - (len(both[name].places) if name in both else 0) for name in final)
    return Additions(fresh, rows - fresh, len(final), len(final) - len(both), len(new))


def _taken_out_there(store: Store, theirs: Store) -> list[Contribution]:
    """Lines that say what was taken out of another store and are not here; refused where it cannot be merged."""
    mine = {line.id for line in store.journal.contributions()}
    lines = theirs.journal.contributions()
    live = {line.id for line in lines if not line.taken_out}
    if unnamed := live - {row[0] for row in theirs.journal.run("SELECT id FROM people")}:
        raise OutputError(f"{theirs.folder}: contribution {min(unnamed)} has no history there; take it out first")
    if twice := live & mine:
        raise OutputError(f"{theirs.folder}: contribution {min(twice)} is in both stores; take it out of one first")
    return [line for line in lines if line.taken_out and line.id not in mine]


def rebuild(store: Store) -> int:
    """Add everybody up once more, on a machine that rounds otherwise, say; the number of people.

    Raises:
        OutputError: some contributions have no history here; their senders would have to send them again.
    """
    now = store.snapshot()
    if now.clients > len(now.people):
        lack = now.clients - len(now.people)
        raise OutputError(f"{store.folder}: {lack:,} contributions have no history here; they cannot be added up again")
    ids = {where: item for where, (item, _) in now.items.items()}
    made: dict[str, str] = {}

    def add(arrays: Arrays) -> None:
        for value in arrays.values.values():
            value[:] = 0
        for name, blocks in store.summing.each(now.people, ids):
            arrays.add(blocks)
            made[name] = store.summing.digest(blocks)

    store.change_all([], add, lambda: store.journal.note_people(now.people, now.people, made, 0.0), store.summing)
    return len(now.people)


def _moved_history(one: History, moved: Mapping[int, int], first: int) -> History:
    return one._replace(places=_mapped(one.places, moved), rows=one.rows + first)


def _mapped(places: IntArray, moved: Mapping[int, int]) -> IntArray:
    return np.array([moved[place] for place in places.tolist()], dtype=np.int64)


def _moved(blocks: Blocks, axes: Mapping[str, Axes], items: int, room: int, moved: Mapping[int, int]) -> Blocks:
    """Move a contribution to another store, which numbers its items differently."""
    found = {}
    for name, block in blocks.items():
        sides = [
            part // items * room + _mapped(part % items, moved) if axis.per_item else part
            for axis, part in zip(axes[name], (block.rows, block.columns), strict=True)
        ]
        down, across = (np.argsort(one, kind="stable") for one in sides)
        found[name] = Block(sides[0][down], sides[1][across], block.steps[np.ix_(down, across)])
    return found
