"""A store of sums: whole numbers over people that can be added to and taken from, exactly, by one writer at a time.

agreement.json       what the numbers mean
agreed.safetensors   values that clients work with, where the method has such
journal.sqlite       contributions, people, items, and the state of the arrays; or journal.json alone, for PostgreSQL
g000001/NAME.i64     the sums, one file each
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from ownview.base.errors import OutputError, UnknownNameError
from ownview.base.files import write_folder
from ownview.base.lock import sole_worker
from ownview.data.interactions import IntArray
from ownview.engine.threads import in_threads
from ownview.runs.files.tensor_files import read_tensors, write_tensors
from ownview.seam.training import Params
from ownview.sums.agreement import StoreAgreement
from ownview.sums.arrays import Arrays, drop_others, read_redo, write_redo
from ownview.sums.blocks import Blocks, Change, size, together
from ownview.sums.histories import History
from ownview.sums.journal import Journal, State
from ownview.sums.summing import Summing

Items = Mapping[int, tuple[str, dict[str, str]]]
"""By place: id, and columns about it."""

_AGREED = "agreed.safetensors"
_FEW_CELLS = 2**22
"""A change of more cells makes new files."""

_ATTEMPTS = 1000
_SPARE = 8
"""One of so many places is spare when files are made, for items that come."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything at one moment.

    Args:
        sums: by name, of the items that there are.
        places: [m] of these items, ascending.
        items: id and columns of each.
        packed: histories by name, as the journal has them.
        clients: contributions that count.
        state: of the arrays.
    """

    sums: dict[str, IntArray]
    places: IntArray
    items: Items
    packed: dict[str, bytes]
    clients: int
    state: State

    @cached_property
    def people(self) -> dict[str, History]:
        """Histories by name."""
        return {name: History.unpacked(one) for name, one in self.packed.items()}


class Store:
    """See `writing` and `reading`."""

    def __init__(self, folder: Path, journal: Journal, *, write: bool) -> None:
        self.folder, self.journal, self.write = folder, journal, write
        self.agreement = StoreAgreement.read(folder)
        self.agreed: Params = read_tensors(folder / _AGREED)[0] if (folder / _AGREED).is_file() else {}
        self._load(journal.state())

    def reload(self) -> None:
        """Read the agreement again, whose server's settings have changed."""
        self.agreement = StoreAgreement.read(self.folder)
        self._load(self.journal.state())

    def _load(self, state: State) -> None:
        self.summing = Summing.of(self.agreement, self.agreed, state.items)
        self.arrays = Arrays(self.folder, state.generation, self.summing.axes, state.items, write=self.write)

    @classmethod
    def create(
        cls, folder: Path, agreement: StoreAgreement, agreed: Params, people: Mapping[str, History], items: Items,
        url: str | None = None,
    ) -> None:  # fmt: skip
        """A store of some people, whole or not at all.

        Args:
            folder: that does not exist.
            agreement: of the store.
            agreed: received values that clients work with, rows of items by place.
            people: histories by name.
            items: by place.
            url: of a PostgreSQL that keeps the journal.
        """
        name, room = secrets.token_hex(8), _roomy(len(items))

        def fill(place: Path) -> None:
            agreement.write(place)
            if agreed:
                write_tensors(place / _AGREED, agreed, {}, {})
            journal = Journal.create(place, url, name)
            try:
                summing = Summing.of(agreement, agreed, room)
                arrays = Arrays.create(place, 1, summing.axes, room)
                ids = {where: item for where, (item, _) in items.items()}
                made = {}
                for who, blocks in summing.each(people, ids):
                    arrays.add(blocks)
                    made[who] = summing.digest(blocks)
                arrays.flush()
                with journal.transaction():
                    rows = max((int(one.rows.max()) + 1 for one in people.values() if len(one.rows)), default=0)
                    journal.set_state(items=room, rows=rows)
                    journal.note_items(items)
                    journal.note_people({}, people, made, 0.0)
                journal.close()
            except BaseException:
                journal.drop()
                raise

        write_folder(folder, fill)

    @classmethod
    @contextmanager
    def writing(cls, folder: Path, url: str | None = None) -> Iterator[Store]:
        """The store, for its only writer; what a killed one had begun is finished first."""
        _require(folder)
        with sole_worker(folder):
            journal = Journal.opened(folder, url)
            try:
                if not journal.lock():
                    raise OutputError(f"{folder}: a process on another machine writes to its journal; wait for it")
                store = cls(folder, journal, write=True)
                store._recover()
                yield store
            finally:
                journal.close()

    @classmethod
    @contextmanager
    def reading(cls, folder: Path, url: str | None = None) -> Iterator[Store]:
        """The store, to read while a writer may be at work."""
        _require(folder)
        journal = Journal.opened(folder, url)
        try:
            yield cls(folder, journal, write=False)
        finally:
            journal.close()

    def _recover(self) -> None:
        state = self.journal.state()
        if state.redo:
            self.arrays.put(read_redo(self.folder / state.redo))
            self.arrays.flush()
            with self.journal.transaction():
                self.journal.set_state(redo="")
        drop_others(self.folder, state.generation, "")

    def names(self) -> list[str]:
        """Of the people, as they came."""
        return [row[0] for row in self.journal.run("SELECT name FROM people ORDER BY name")]

    def history(self, name: str) -> History | None:
        """Of one person; None where the name is unknown."""
        rows = self.journal.run("SELECT history FROM people WHERE name = ?", name)
        return History.unpacked(bytes(rows[0][0])) if rows else None

    def put(self, people: Mapping[str, History], items: Items, budget: float = 0.0) -> int:
        """Make these histories what counts of these people, who may be new; the number of cells that changed.

        Args:
            people: by name.
            items: places that are new.
            budget: of this contribution, as its method accounts for it.
        """
        known = {name: one for name in people if (one := self.history(name)) is not None}
        ids = self.journal.ids([*known.values(), *people.values()]) | {k: item for k, (item, _) in items.items()}
        needed = max(self.journal.last_place(), *items, -1) + 1
        room = self.arrays.items if needed <= self.arrays.items else _roomy(needed)
        summing = self.summing if room == self.arrays.items else Summing.of(self.agreement, self.agreed, room)
        added, works = self._added(known, ids, summing), summing.works(people, ids)

        def changed(name: str) -> tuple[str, Change]:
            before, after = added[name]() if name in known else {}, works[name]()
            return summing.digest(after), summing.change(after, before)

        made = in_threads([partial(changed, name) for name in people])  # whole contributions of all are some GB
        digests, parts = dict(zip(people, (one for one, _ in made), strict=True)), [one for _, one in made]
        rows = max(int(one.rows.max()) + 1 if len(one.rows) else 0 for one in people.values()) if people else 0

        def record() -> None:
            self.journal.note_items(items)
            self.journal.note_people(known, people, digests, budget)
            self.journal.set_state(rows=max(rows, self.journal.state().rows))

        return self._commit(parts, record, summing)

    def forget(self, name: str, begun: Callable[[], object] = lambda: None) -> int:
        """Take a person out: sums, journal, and items of that person alone; the number of cells that changed.

        Args:
            name: of the person.
            begun: called once it is known that they can be taken out, before anything changes.

        Raises:
            UnknownNameError: the store has no person of that name (any more).
        """
        one = self.history(name)
        if one is None:
            raise UnknownNameError("user of this model (a forgotten one is unknown)", name, self.names())
        taken = self.summing.change({}, self._added({name: one}, self.journal.ids([one]), self.summing)[name]())

        def record() -> None:
            self.journal.note_forgotten(name, one)

        begun()
        changed = self._commit([taken], record, self.summing)
        self.journal.clean()
        return changed

    def add(self, contribution: str, blocks: Blocks, budget: float = 0.0) -> bool:
        """A contribution whose history is elsewhere; whether it is new: the same id counts once."""
        if self.journal.run("SELECT id FROM contributions WHERE id = ?", contribution):
            return False
        places = self.items_of(blocks)
        if unknown := sorted(set(places.tolist()) - set(self.journal.items())):
            raise OutputError(f"contribution {contribution[:64]!r}: place {unknown[0]} has no item; nothing was added")
        made = self.summing.digest(blocks)

        def record() -> None:
            self.journal.note(contribution, made, budget)
            self.journal.count(places, 1)

        self._commit([self.summing.change(blocks, {})], record, self.summing)
        return True

    def take_out(self, contribution: str, blocks: Blocks) -> None:
        """Take a contribution out whose history is elsewhere: its sender sends it once more.

        Raises:
            OutputError: it is unknown, taken out already, or not what was added.
        """
        rows = self.journal.run("SELECT taken_out, digest FROM contributions WHERE id = ?", contribution)
        if not rows or rows[0][0]:
            why = "is taken out already" if rows else "is not in this store"
            raise OutputError(f"contribution {contribution[:64]!r}: {why}; nothing was changed")
        if rows[0][1] != self.summing.digest(blocks):
            raise OutputError(f"contribution {contribution[:64]!r}: is not what was added; nothing was changed")
        change, places = self.summing.change({}, blocks), self.items_of(blocks)
        self._commit([change], lambda: self.journal.note_taken_out(contribution, places), self.summing)

    def items_of(self, blocks: Blocks) -> IntArray:
        """Places of the items that a contribution is about; they stay as long as it counts."""
        room, axes = self.summing.items, self.summing.axes
        sides = [(axis, part) for name, one in blocks.items() for axis, part in zip(axes[name], one[:2], strict=True)]
        found = [part % room for axis, part in sides if axis.per_item]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def snapshot(self, *, copied: bool = True) -> Snapshot:
        """A consistent snapshot, also while a writer is at work.

        Args:
            copied: whether sums are copies; a writer that changes nothing while it looks can do with the files.
        """
        for _ in range(_ATTEMPTS):
            state, items = self.journal.state(), self.journal.items()
            rows = self.journal.run("SELECT name, history FROM people ORDER BY name")
            counting = self.journal.run("SELECT COUNT(*) FROM contributions WHERE taken_out = 0")
            try:
                if state.generation != int(self.arrays.folder.name[1:]):
                    self._load(state)
                places = np.array(sorted(items), dtype=np.int64)
                waiting = read_redo(self.folder / state.redo) if state.redo else {}
                sums = self._read(places, waiting, copied)
            except OutputError:
                if self.journal.state() == state:
                    raise
                continue
            if self.journal.state() == state:
                packed = {name: bytes(one) for name, one in rows}
                return Snapshot(sums, places, items, packed, int(counting[0][0]), state)
        raise OutputError(f"{self.folder}: changes all the time; read it later")

    def _read(self, places: IntArray, waiting: Change, copied: bool) -> dict[str, IntArray]:
        """Sums of some items; cells that may not have been written yet have their values."""
        found = {}
        for name, axes in self.arrays.axes.items():
            found[name] = self.arrays.of(name, places, copied=copied or name in waiting)
            if name in waiting:
                cells, sides = waiting[name], []
                for axis, part in zip(axes, np.divmod(cells.places, axes[1].size(self.arrays.items)), strict=True):
                    where = np.full(axis.size(self.arrays.items), -1)
                    here = axis.of(places, self.arrays.items)
                    where[here] = np.arange(len(here))
                    sides.append(where[part])
                there = np.minimum(*sides) >= 0
                found[name][sides[0][there], sides[1][there]] = cells.steps[there]
        return found

    def _added(
        self, people: Mapping[str, History], ids: Mapping[int, str], summing: Summing
    ) -> dict[str, Callable[[], Blocks]]:
        """What people have added, worked out again; refuses where this machine makes other numbers than were added."""
        noted = "SELECT c.digest FROM contributions c JOIN people p ON p.id = c.id WHERE p.name = ?"
        digests = {name: self.journal.run(noted, name)[0][0] for name in people}

        def same(name: str, work: Callable[[], Blocks]) -> Blocks:
            blocks = work()
            if digests[name] != summing.digest(blocks):
                raise OtherRoundingError(
                    f"{self.folder}: this machine rounds otherwise than the one that added user {name}: add everybody "
                    "up again with: ownview sums rebuild"
                )
            return blocks

        return {name: partial(same, name, work) for name, work in summing.works(people, ids).items()}

    def _commit(self, parts: Sequence[Change], record: Callable[[], object], summing: Summing) -> int:
        """Change sums and journal together; the number of cells that changed."""
        state, cells = self.journal.state(), sum(map(size, parts))
        if summing.items == state.items and cells <= _FEW_CELLS:
            values = self.arrays.after(together(parts))
            redo = f"redo-{state.sequence + 1:09d}"
            write_redo(self.folder / redo, values)
            with self.journal.transaction():
                record()
                self.journal.set_state(sequence=state.sequence + 1, redo=redo)
            self._recover_from(values, redo)
            return cells
        self.change_all(parts, lambda arrays: None, record, summing)
        return cells

    def change_all(
        self, parts: Sequence[Change], change: Callable[[Arrays], None], record: Callable[[], object], summing: Summing
    ) -> None:
        """Change sums at large, in new files, and the journal with them."""
        new = self.arrays.copied_to(self.journal.state().generation + 1, summing.items)
        change(new)
        for one in parts:
            new.put(new.after(one))
        self._replace(new, record, summing)

    def _recover_from(self, values: Change, redo: str) -> None:
        self.arrays.put(values)
        self.arrays.flush()
        with self.journal.transaction():
            self.journal.set_state(redo="")
        (self.folder / redo).unlink()

    def _replace(self, new: Arrays, record: Callable[[], object], summing: Summing) -> None:
        """Put new files in the place of the old ones."""
        state = self.journal.state()
        new.flush()
        with self.journal.transaction():
            record()
            self.journal.set_state(generation=state.generation + 1, items=summing.items, sequence=state.sequence + 1)
        self.arrays, self.summing = new, summing
        drop_others(self.folder, state.generation + 1, "")


class OtherRoundingError(OutputError):
    """Contributions worked out again are not those that were added."""


def _require(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError(f"{folder}: no such store of sums; ownview sums lists what a model has")


def _roomy(items: int) -> int:
    return items + items // _SPARE + 8
