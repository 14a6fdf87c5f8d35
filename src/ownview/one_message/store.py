"""What a server of shares keeps, so that a kill at any moment loses nothing and counts nothing twice.

journal.sqlite    messages, contributions, and which generation of files counts
waiting/          share b: numbers of messages that the other server has not confirmed yet
share.N.u4        share b: the sum of the shares that were confirmed and are not opened, group by group
total.N.i64       share b: what was opened so far and counts, group by group
weights.json      share b: name of the weights that were solved last (pages.weights_file); weights.NAME.json: these
batch.HEX.u4      share a: its sum of the batch opened last, for a server b that was killed before it had it

A change of files makes the next generation beside the old one; one transaction of the journal puts it in its place.
Server a keeps the keys of messages until their batch is opened, and overwrites them then.

One process at a time writes (`ownview sums serve` holds the folder); what else reads it takes `OpenedSums`, which
removes nothing.
"""

from __future__ import annotations

import hmac
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.base.errors import MessageError
from ownview.base.files import make_folder, sync_folder
from ownview.base.rights import OWN_FILE
from ownview.one_message.batch_room import BatchRoom
from ownview.one_message.envelope import NAME, Message, Operation, stream
from ownview.one_message.groups import alike
from ownview.one_message.numbers import Numbers, signed
from ownview.one_message.opened_sums import JOURNAL, LEFT_OUT, OPENED, OUT, SUMMED, TABLES, WAITING, OpenedSums
from ownview.one_message.terms import Share, Terms
from ownview.one_message.writing import write_private

_ASKED = "asked"
"""As the batch of share b: server a has been asked for it, and may have opened it."""
_IS_OUT = "SELECT 1 FROM contributions WHERE name = ? AND out"
AT_ONCE = 64
"""Messages that are confirmed and added together."""
ASKED_TOGETHER = 4096
"""Messages that server a is asked about at once."""
MOST_WAITING_BYTES = 8 << 30
NO_ROOM = "there is no room at the moment; try again later"


UNCONFIRMED_SECONDS = 600.0
"""That a message waits at b which a does not know. A client sends to a first, so no honest one is without its other
half; kept for ever they would fill the disk, and everybody would be refused."""


class NoRoomError(MessageError):
    """A sound message, for which there is no room at the moment."""


class ShareStore(OpenedSums):
    """The store of one server.

    Args:
        folder: made where it is not there.
        terms: the agreement; a folder belongs to one.
        share: "a" or "b".
        grouping: a key that both servers have and tabs have not: it decides which group a contribution is in.
    """

    def __init__(self, folder: Path, terms: Terms, share: Share, grouping: bytes = b"") -> None:
        self.grouping = grouping
        make_folder(folder / "waiting", private=True)
        new = not (folder / JOURNAL).exists()
        self._connect(folder, terms, share)
        self.journal.executescript(
            "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA journal_mode = DELETE;"
        )
        if new or not self._rows("SELECT name FROM sqlite_master WHERE name = 'facts'"):
            (folder / JOURNAL).chmod(OWN_FILE)
            with self._transaction():
                for line in TABLES.split(";"):
                    self.journal.execute(line)
                self.journal.execute("INSERT INTO facts VALUES (0, 0, '', ?)", (terms.name + share.encode(),))
        self._require_own()
        self.unconfirmed: dict[bytes, float] = {}
        self.room = self._room()
        self._recover()

    def put(self, message: Message) -> bool:
        """Keep a message; whether it is new: the same one again changes nothing.

        Raises:
            MessageError: it changes a contribution that is not here, is taken out, or has another secret.
        """
        with self.guard:
            if self._rows("SELECT 1 FROM messages WHERE name = ?", message.name):
                return False
            adds = message.operation is Operation.ADD
            found = self._rows("SELECT proof, out FROM contributions WHERE name = ?", message.contribution)
            if not adds and (not found or found[0][0] != message.proof):
                raise MessageError("no such contribution, or another secret")
            never_counted = not adds and found[0][1] == LEFT_OUT
            if not adds and found[0][1] == OUT:
                raise MessageError("the contribution is taken out already")
            if never_counted and message.operation is not Operation.TAKE_OUT:
                raise MessageError("the contribution is in a group that stood out, and was left out: take it out")
            if message.operation is Operation.CHANGE and self.terms.budget is not None:
                raise MessageError("under a budget a contribution is taken out, not changed")
            if self.share == "b" and not never_counted:
                self._require_room()
                write_private(self._waiting(message.name), message.share)
            with self._transaction():
                if adds:
                    self.journal.execute("INSERT INTO contributions VALUES (?, ?, 0)", (message.name, message.proof))
                elif message.operation is Operation.TAKE_OUT and self.share == "b":
                    # Server a notes it when the batch is opened: b may refuse what a has, and then it is sent anew.
                    self.journal.execute("UPDATE contributions SET out = 1 WHERE name = ?", (message.contribution,))
                key = message.share if self.share == "a" else None
                state = OPENED if never_counted else WAITING  # what never counted is out at once
                row = (message.name, message.contribution, int(message.operation), state, key)
                self.journal.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", row)
            return True

    def confirm(self, ask: Callable[[Sequence[bytes]], Sequence[bytes]]) -> int:
        """Add waiting shares that the other server has too, asked by `entry`, to the sum; how many (share b)."""
        with self.guard:
            if self._rows("SELECT batch FROM facts")[0][0] == _ASKED:
                return 0
            rows = self._rows("SELECT name, operation, contribution FROM messages WHERE state = ?", WAITING)
        entries, waiting = [self.entry(*row) for row in rows], [row[0] for row in rows]
        self.unconfirmed = {name: self.unconfirmed[name] for name in waiting if name in self.unconfirmed}
        confirmed, room = list[bytes](), self.room
        for begin in range(0, len(waiting), ASKED_TOGETHER):
            asked = waiting[begin : begin + ASKED_TOGETHER]
            known = {*ask(entries[begin : begin + ASKED_TOGETHER])} & {*asked}
            self._forget_unconfirmed([name for name in asked if name not in known])
            confirmed, room = self._with_room([*confirmed, *sorted(known)])
            if len(confirmed) == AT_ONCE:
                break
        if not confirmed:
            return 0
        with self.guard:
            total = self._share()
            for name in confirmed:
                total[self._group(self._about(name)[1])] += self._numbers(self._waiting(name), "<u4", 1)[0]
            with self._next_generation(total, None):
                self._mark(confirmed, SUMMED)
            self.room = room
            for name in confirmed:
                self._waiting(name).unlink(missing_ok=True)
            return len(confirmed)

    def _with_room(self, names: Sequence[bytes]) -> tuple[list[bytes], BatchRoom]:
        """Of some messages those that the next batch takes, `AT_ONCE` at most; and its room with them.

        What changes a contribution comes after what adds it.
        """
        with self.guard:
            room, found = self.room.copied(), list[bytes]()
            for name in names:
                operation, contribution = self._about(name)
                added = operation == Operation.ADD or not self._rows(
                    "SELECT 1 FROM messages WHERE name = ? AND state = ?", contribution, WAITING
                )
                if added and room.takes(operation, self._group(contribution)):
                    found.append(name)
                if len(found) == AT_ONCE:
                    break
            return found, room

    def _room(self) -> BatchRoom:
        """With the messages that are in the sum of shares."""
        room = BatchRoom(self.terms.groups, self.terms.most)
        find = "SELECT operation, contribution FROM messages WHERE state = ?"
        for operation, contribution in self._rows(find, SUMMED):
            room.count(operation, self._group(contribution))
        return room

    def _forget_unconfirmed(self, unknown: Sequence[bytes]) -> None:
        """Drop messages that server a has not known for `UNCONFIRMED_SECONDS`, as if they had never come."""
        now = time.monotonic()
        late = [name for name in unknown if now - self.unconfirmed.setdefault(name, now) >= UNCONFIRMED_SECONDS]
        if not late:
            return
        with self.guard, self._transaction():
            for name in late:
                operation, contribution = self._about(name)
                if operation == Operation.ADD:
                    self.journal.execute("DELETE FROM contributions WHERE name = ?", (contribution,))
                elif operation == Operation.TAKE_OUT:
                    back = "UPDATE contributions SET out = 0 WHERE name = ? AND out = ?"
                    self.journal.execute(back, (contribution, OUT))
                self.journal.execute("DELETE FROM messages WHERE name = ?", (name,))
        for name in late:
            del self.unconfirmed[name]
            self._waiting(name).unlink(missing_ok=True)

    def open(self, ask: Callable[[Sequence[bytes]], bytes]) -> int:
        """Open all confirmed messages where they add enough contributions; how many were opened (share b).

        Server a opens a message once. So what was asked for is asked for again, with nothing beside it, until its
        answer is here: with one message more it would be another batch.
        """
        with self.guard:
            if self.room.adding.min() < self.terms.fewest:
                return 0
            find = "SELECT name, operation, contribution FROM messages WHERE state = ? ORDER BY name"
            rows = self._rows(find, SUMMED)
            names = [row[0] for row in rows]
            adds = self._adds((row[1], row[2]) for row in rows)
            if adds.min() < self.terms.fewest:
                return 0
            self.journal.execute("UPDATE facts SET batch = ?", (_ASKED,))
        answer, expected = ask(names), 4 * self.terms.size * self.terms.groups
        if len(answer) != expected:
            raise MessageError(f"the other server's sum has {len(answer):,} bytes; expected {expected:,}")
        with self.guard:
            shape = (self.terms.groups, self.terms.size)
            opened = signed(self._share() + np.frombuffer(answer, dtype="<u4").reshape(shape) + self._noise())
            kept, total = alike(opened, adds), self._by_group()
            total[kept] += opened[kept]
            dropped = self._changed_later(rows, kept)
            total[sorted(dropped)] = 0
            with self._next_generation(np.zeros(shape, dtype=np.uint32), total):
                self._mark(names, OPENED)
                self.journal.execute("UPDATE facts SET batches = batches + 1, batch = ''")
                gone = {row[2] for row in rows if not kept[self._group(row[2])]}
                cancelled = self._leave_out(gone | self._counted_in(dropped))
            self.room = self._room()
            for name in cancelled:
                self._waiting(name).unlink(missing_ok=True)
            return len(names)

    def _changed_later(self, rows: Sequence[tuple[bytes, int, bytes]], kept: npt.NDArray[np.bool_]) -> set[int]:
        """Groups that are left out with a message that changes or takes out what an earlier batch counted.

        What was to be taken out would stay in the total: so these groups go with all that they counted before.
        """
        added = {row[2] for row in rows if row[1] == Operation.ADD}
        late = {self._group(row[2]) for row in rows if row[2] not in added}
        return {group for group in late if not kept[group]}

    def _counted_in(self, groups: set[int]) -> set[bytes]:
        """All opened contributions of some groups."""
        if not groups:
            return set()
        find = "SELECT contribution FROM messages WHERE state = ? AND operation = ?"
        return {row[0] for row in self._rows(find, OPENED, int(Operation.ADD)) if self._group(row[0]) in groups}

    def _leave_out(self, gone: set[bytes]) -> list[bytes]:
        """Mark contributions as never counted; the names of waiting messages that would change them, which end here."""
        self.journal.executemany(
            f"UPDATE contributions SET out = {LEFT_OUT} WHERE name = ? AND out = 0", [(one,) for one in gone]
        )
        find = "SELECT name, contribution FROM messages WHERE state = ? AND operation != ?"
        waiting = [row[0] for row in self._rows(find, WAITING, int(Operation.ADD)) if row[1] in gone] if gone else []
        self._mark(waiting, OPENED)
        return waiting

    def batch(self, names: Sequence[bytes]) -> Path:
        """The file with the sum of the shares of some messages, which are opened by it; the same again (share a).

        Raises:
            MessageError: they add too few contributions, or one of them is not here, was opened in another batch, or
                takes out what is out: a budget is for one sum with a contribution and one without.
        """
        name = sha256(b"".join(names)).hexdigest()
        path = self.folder / f"batch.{name}.u4"
        with self.guard:
            if self._rows("SELECT batch FROM facts")[0][0] == name and path.is_file():
                return path
            if sorted({*names}) != list(names):
                raise MessageError("is no batch: names are not different and ascending")
            rows, find = [], "SELECT operation, contribution, key FROM messages WHERE name = ? AND state = ?"
            for one in names:
                found = self._rows(find, one, WAITING)
                if not found:
                    raise MessageError("is no batch: one of its messages is not here, or was opened before")
                rows.append(found[0])
            groups = np.bincount([self._group(row[1]) for row in rows], minlength=self.terms.groups)
            if groups.max() > self.terms.most:
                raise MessageError(f"is no batch: {groups.max():,} messages of a group; expected {self.terms.most:,}")
            adds = self._adds(row[:2] for row in rows).min()
            if adds < self.terms.fewest:
                raise MessageError(f"adds {adds:,} contributions; expected {self.terms.fewest:,} at least")
            out = [(contribution,) for operation, contribution, _ in rows if operation == Operation.TAKE_OUT]
            if len({*out}) < len(out) or any(self._rows(_IS_OUT, *one) for one in out):
                raise MessageError("is no batch: it takes a contribution out twice")
            total = np.zeros((self.terms.groups, self.terms.size), dtype=np.uint32)
            for _, contribution, key in rows:
                total[self._group(contribution)] += stream(key, self.terms.size)
            total += self._noise()
            write_private(path, total.astype("<u4").tobytes())
            with self._transaction():
                self._mark(names, OPENED)
                self.journal.executemany(f"UPDATE contributions SET out = {OUT} WHERE name = ?", out)
                self.journal.execute("UPDATE facts SET batches = batches + 1, batch = ?", (name,))
            self._drop("batch", path.name)
            return path

    def _group(self, contribution: bytes) -> int:
        """By a keyed hash of its name: no tab can choose it, and what changes a contribution is in the same one."""
        hashed = hmac.digest(self.grouping, contribution, "sha256")
        return int.from_bytes(hashed[:8], "little") % self.terms.groups

    def _adds(self, rows: Iterable[tuple[int, bytes]]) -> npt.NDArray[np.int64]:
        """[groups] how many contributions messages add and do not take out again, by operation and contribution."""
        sets: dict[int, set[bytes]] = {int(one): set() for one in Operation}
        for operation, contribution in rows:
            sets[operation].add(contribution)
        counted = [self._group(one) for one in sets[Operation.ADD] - sets[Operation.TAKE_OUT]]
        return np.bincount(counted, minlength=self.terms.groups)

    def _noise(self) -> Numbers:
        """[groups, n] for the whole budget: the other server's noise is not relied on; a person is in one group."""
        shape, budget = (self.terms.groups, self.terms.size), self.terms.budget
        return np.zeros(shape, dtype=np.uint32) if budget is None else budget.drawn(math.prod(shape)).reshape(shape)

    def _share(self) -> Numbers:
        if not (here := self._generation()):
            return np.zeros((self.terms.groups, self.terms.size), dtype=np.uint32)
        found: Numbers = self._numbers(self.folder / f"share.{here}.u4", "<u4", self.terms.groups).astype(
            np.uint32, copy=False
        )
        return found

    @contextmanager
    def _next_generation(self, share: Numbers, total: Any) -> Iterator[None]:
        """Put new files in the place of the old ones, together with what the block does to the journal."""
        here = self._generation()
        write_private(self.folder / f"share.{here + 1}.u4", share.astype("<u4").tobytes())
        old, new = (self.folder / f"total.{one}.i64" for one in (here, here + 1))
        new.unlink(missing_ok=True)  # what failed may have left a link to the old one, which would change too
        if total is not None:
            write_private(new, total.astype("<i8").tobytes())
        elif old.is_file():
            os.link(old, new)
            sync_folder(self.folder)
        with self._transaction():
            yield
            self.journal.execute("UPDATE facts SET generation = ?", (here + 1,))
        self._drop("share", f"share.{here + 1}.u4")
        self._drop("total", new.name)

    def _mark(self, names: Sequence[bytes], state: int) -> None:
        rows = [(state, name) for name in names]
        self.journal.executemany("UPDATE messages SET state = ?, key = CASE WHEN ?1 = 2 THEN NULL ELSE key END "
                                 "WHERE name = ?", rows)  # fmt: skip

    def _recover(self) -> None:
        """Remove what a killed process left behind."""
        here, batch = self._generation(), self._rows("SELECT batch FROM facts")[0][0]
        for kind, kept in (
            ("share", f"share.{here}.u4"),
            ("total", f"total.{here}.i64"),
            ("batch", f"batch.{batch}.u4"),
        ):
            self._drop(kind, kept)
        waiting = {row[0].hex() for row in self._rows("SELECT name FROM messages WHERE state = ?", WAITING)}
        for path in (self.folder / "waiting").iterdir():
            if path.name not in waiting:
                path.unlink()

    def _drop(self, kind: str, kept: str) -> None:
        for path in self.folder.glob(f"{kind}.*"):
            if path.name != kept:
                path.unlink()

    def _require_room(self) -> None:
        waiting = self._rows("SELECT COUNT(*) FROM messages WHERE state = ?", WAITING)[0][0]
        size = 4 * self.terms.size
        if (waiting + 1) * size > MOST_WAITING_BYTES or (
            shutil.disk_usage(self.folder).free < 4 * size * self.terms.groups
        ):
            raise NoRoomError(NO_ROOM)

    def _waiting(self, name: bytes) -> Path:
        assert len(name) == NAME
        return self.folder / "waiting" / name.hex()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.journal.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.journal.execute("COMMIT")  # which a full disk or a reader refuses; the next one could not begin then
        except BaseException:
            self.journal.rollback()
            raise
