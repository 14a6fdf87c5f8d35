"""The ledger of releases: what was released of whom under a budget on this machine, and what that leaves.

FOLDER/releases.jsonl  a line that names the key, then one a release or a total, in order; replaced whole and synced
                       before anything is published
FOLDER/people/HASH     who took part, or which items there were, as keyed hashes
FOLDER/key             what they are hashed with

All of it is for its owner's eyes alone and never published. A release is charged first and made afterwards: a crash in
between counts what never was, and nothing is ever made that was not counted.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import make_folder, write_bytes, write_text
from ownview.base.lock import sole_worker
from ownview.base.platforms import data_home
from ownview.releases.entries import Entry, Mechanism, entry_of
from ownview.releases.people import People, hashed, read_people, write_people
from ownview.releases.spending import NOTHING, Spent, spent

ENVIRONMENT = "OWNVIEW_LEDGER"
FORMAT = 1
_KEY = 32
_PATIENCE = 120.0
"""Seconds to wait for another release that is being charged."""
_NAMED = 3
"""Releases that a refusal names."""
_BRING_BACK = "so nothing is released; bring a sound copy of the folder back"


def ledger_dir() -> Path:
    """$OWNVIEW_LEDGER, or where the system keeps data of programs; not a cache, which may be emptied."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named).expanduser() if named else data_home() / "ownview" / "releases"


class Asked(NamedTuple):
    """A release that is to be made.

    id:        the same for everything that is published of one model
    data:      what the data is called
    world:     whose ids its users are
    model:     what the model is called
    folder:    of the model
    mechanism: what is released
    items:     ids of the data's items, which tell shops apart; None where they are not known
    is_file:   whether the data is a dataset or a file of interactions, whose people `ownview privacy total` can name
    """

    id: str
    data: str
    world: str
    model: str
    folder: str
    mechanism: Mechanism
    items: Iterable[object] | None = None
    is_file: bool = True


class Standing(NamedTuple):
    """What was released of a set of people.

    data:    what the data is called, as its last line says
    number:  of people
    spent:   by the one of whom most was released
    by:      those releases
    total:   the smallest that holds for one of them
    """

    data: str
    number: int
    spent: Spent
    by: tuple[Entry, ...]
    total: float


class Ledger:
    """Ledger of all releases on this machine.

    Args:
        folder: made when something is first written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = ledger_dir() if folder is None else folder
        self.file, self.people = self.folder / "releases.jsonl", self.folder / "people"

    def entries(self) -> list[Entry]:
        """All releases and totals.

        Raises:
            OutputError: the file is damaged, or missing although there was one.
        """
        if not self.file.exists():
            if self.people.exists():  # made after the file
                raise OutputError(f"{self.file}: is missing, and releases were made, {_BRING_BACK}")
            return []
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.file}: cannot be read: {error}, {_BRING_BACK}") from None
        if not lines or lines[0] != self._head(self._key()):
            raise OutputError(f"{self.file}: line 1 does not name the key beside it, {_BRING_BACK}")
        found = []
        for number, line in enumerate(lines[1:], start=2):
            try:
                found.append(entry_of(line))
            except ValueError as error:
                raise OutputError(f"{self.file}: line {number} is damaged: {error}, {_BRING_BACK}") from None
        return found

    def charge(self, asked: Asked, users: Iterable[object], total: float | None = None) -> bool:
        """Write a release down before it is made; one that stands there already costs nothing.

        Args:
            asked: the release.
            users: ids of all who take part.
            total: for these people from now on; None for the total that holds for them, which is the epsilon of their
                first release where none was set.

        Returns:
            whether it was written down now.

        Raises:
            SettingError: a person's total would be exceeded.
            OutputError: the ledger cannot be read or written.
        """
        with self._sole() as entries:
            if any(entry.id == asked.id for entry in entries):
                return False
            key = self._key()
            people = hashed(key, asked.world, users)
            items = None if asked.items is None else hashed(key, asked.world, asked.items)
            members = self._members(entries, people, items)
            allowed = total if total is not None else _total(entries, members)
            if allowed is None:
                allowed = asked.mechanism.epsilon
            _require_within(entries, members, asked, allowed)
            self._append(entries, people, items, _entry(asked, allowed))
            return True

    def set_total(
        self, data: str, world: str, users: Iterable[object], total: float, items: Iterable[object] | None = None
    ) -> None:
        """Let a total hold for these people from now on; what was released of them stays released."""
        with self._sole() as entries:
            key = self._key()
            people, known = hashed(key, world, users), None if items is None else hashed(key, world, items)
            self._append(entries, people, known, Entry("", _now(), data, "", "", "", 0, total, None))

    def standings(self) -> list[Standing]:
        """What was released of every set of people that a line has, and what is left."""
        entries = self.entries()
        last = {(entry.people, entry.items): entry for entry in entries}
        found = []
        for entry in last.values():
            people = read_people(self.people, entry.people)
            members = self._members(entries, people, self._items(entry))
            most, by = _spent(entries, members)
            found.append(Standing(entry.data, entry.number, most, by, _total(entries, members) or entry.total))
        return found

    @contextmanager
    def _sole(self) -> Iterator[list[Entry]]:
        """All releases and totals under an exclusive lock; makes the files at first."""
        make_folder(self.folder, private=True)
        with sole_worker(self.folder, patience=_PATIENCE, busy="another release is being written down; try again"):
            entries = self.entries()
            if not self.file.exists():
                write_bytes(self.folder / "key", secrets.token_bytes(_KEY), private=True)
                write_text(self.file, f"{self._head(self._key())}\n", private=True)
            yield entries

    def _key(self) -> bytes:
        """Salt of people's hashes. Under another one no person would match earlier releases."""
        path = self.folder / "key"
        try:
            key = path.read_bytes()
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror or error}, {_BRING_BACK}") from None
        if len(key) != _KEY:
            raise OutputError(f"{path}: is damaged: {len(key)} bytes, expected {_KEY}, {_BRING_BACK}")
        return key

    def _head(self, key: bytes) -> str:
        """The first line; its name of the key says nothing of the key."""
        name = hashlib.blake2b(b"name", key=key, digest_size=8, person=b"ownview people").hexdigest()
        return json.dumps({"format": FORMAT, "key": name})

    def _members(self, entries: Sequence[Entry], people: People, items: People | None) -> npt.NDArray[np.bool_]:
        """[k, n] which line has which of the people; a line about other items has none of them."""
        found = np.zeros((len(entries), len(people)), dtype=bool)
        for row, entry in zip(found, entries, strict=True):
            theirs = self._items(entry)
            if items is None or theirs is None or np.isin(items, theirs, assume_unique=True).any():
                row[:] = np.isin(people, read_people(self.people, entry.people), assume_unique=True)
        return found

    def _items(self, entry: Entry) -> People | None:
        """Hashes of a line's items; None where they are not known."""
        return read_people(self.people, entry.items) if entry.items else None

    def _append(self, entries: Sequence[Entry], people: People, items: People | None, entry: Entry) -> None:
        """Add a line; all lines are put in place in one step, so that no crash leaves half of one."""
        named = replace(
            entry, people=write_people(self.people, people), number=len(people),
            items="" if items is None else write_people(self.people, items),
        )  # fmt: skip
        lines = (self._head(self._key()), *(one.line() for one in (*entries, named)))
        write_text(self.file, "".join(f"{line}\n" for line in lines), private=True)


def _require_within(entries: Sequence[Entry], members: npt.NDArray[np.bool_], asked: Asked, total: float) -> None:
    """Refuse a release that would exceed a person's total."""
    one = asked.mechanism
    places = _releases(entries)
    all_people = np.ones((1, members.shape[1]), dtype=bool)
    after = spent([*_mechanisms(entries), one], np.concatenate([members[places], all_people]))
    if after.epsilon <= total:
        return
    before, by = _spent(entries, members)
    raised = math.ceil(after.epsilon * 100) / 100
    or_else = f" or: ownview privacy total {asked.data} {raised:g}" if asked.is_file else ""
    how = f"a total that allows it is set by --total {raised:g}{or_else}"
    if not by:
        raise SettingError(f"{asked.data}: epsilon {one.epsilon:g} is more than the total of {total:g}; {how}")
    named = ", ".join(entry.title for entry in by[:_NAMED])
    more = f" and {len(by) - _NAMED} more" if len(by) > _NAMED else ""
    raise SettingError(
        f"{asked.data}: the budget of these people is spent: epsilon {before.epsilon:.4g} of a total of {total:g}, by "
        f"{named}{more}; with epsilon {one.epsilon:g} more it would be {after.epsilon:.4g}; {how}"
    )


def _spent(entries: Sequence[Entry], members: npt.NDArray[np.bool_]) -> tuple[Spent, tuple[Entry, ...]]:
    """What lines have spent of people, and the releases that did."""
    places = _releases(entries)
    if not places:
        return NOTHING, ()
    most = spent(_mechanisms(entries), members[places])
    return most, tuple(entries[places[one]] for one in most.releases)


def _releases(entries: Sequence[Entry]) -> list[int]:
    return [place for place, entry in enumerate(entries) if entry.mechanism is not None]


def _mechanisms(entries: Sequence[Entry]) -> list[Mechanism]:
    return [entry.mechanism for entry in entries if entry.mechanism is not None]


def _total(entries: Sequence[Entry], members: npt.NDArray[np.bool_]) -> float | None:
    """The smallest of the totals that people have, each by the last line that it is in; None where they are new."""
    known = members.any(axis=0)
    if not known.any():
        return None
    last: list[int] = np.unique(len(entries) - 1 - np.argmax(members[::-1, known], axis=0)).tolist()
    return min(entries[place].total for place in last)


def _entry(asked: Asked, total: float) -> Entry:
    return Entry(asked.id, _now(), asked.data, asked.model, asked.folder, "", 0, total, asked.mechanism)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
