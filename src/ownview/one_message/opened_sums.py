"""What a server of shares has in its folder, to be read alone: the server itself may be at work there."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.base.errors import DataError, OutputError
from ownview.one_message.envelope import NAME, Operation
from ownview.one_message.terms import Share, Terms

JOURNAL, LATEST = "journal.sqlite", "weights.json"
TABLES = """
CREATE TABLE messages (name BLOB PRIMARY KEY, contribution BLOB NOT NULL, operation INTEGER NOT NULL,
                       state INTEGER NOT NULL, key BLOB);
CREATE INDEX by_state ON messages (state, operation);
CREATE TABLE contributions (name BLOB PRIMARY KEY, proof BLOB NOT NULL, out INTEGER NOT NULL);
CREATE TABLE facts (generation INTEGER NOT NULL, batches INTEGER NOT NULL, batch TEXT NOT NULL, terms BLOB NOT NULL);
"""
"""Of a journal."""
WAITING, SUMMED, OPENED = range(3)
"""States of a message: kept, in the sum of shares, opened."""
OUT, LEFT_OUT = 1, 2
"""Of a contribution: taken out by its owner, or never counted."""
ENTRY = NAME + 1 + NAME
"""Bytes by which b names a message when it asks whether a has it: name, operation, contribution."""
_ATTEMPTS = 100
_PATIENCE = 30.0
"""Seconds to wait for another process's transaction."""


class Status(NamedTuple):
    """contributions: that are opened and not taken out; waiting: messages that are not opened; batches: opened."""

    contributions: int
    waiting: int
    batches: int


class OpenedSums:
    """The folder of one server, read and never written.

    Args:
        folder: of the server.
        terms: its agreement.
        share: "a" or "b".

    Raises:
        OutputError: there is no such folder.
        DataError: it belongs to another agreement, or its journal cannot be read.
    """

    def __init__(self, folder: Path, terms: Terms, share: Share) -> None:
        if not (folder / JOURNAL).is_file():
            raise OutputError(f"{folder}: holds no shares; expected the --folder of ownview sums serve")
        self._connect(folder, terms, share)
        with self._readable():
            self._require_own()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What is no journal, or a damaged one, ends in a line."""
        try:
            yield
        except (sqlite3.DatabaseError, IndexError) as error:
            path = self.folder / JOURNAL
            raise DataError(
                f"{path}: cannot be read as a journal of shares: {error}; bring a sound copy back"
            ) from None

    def _connect(self, folder: Path, terms: Terms, share: Share) -> None:
        self.folder, self.terms, self.share = folder, terms, share
        self.guard = threading.RLock()
        self.journal = sqlite3.connect(
            folder / JOURNAL, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )

    def _require_own(self) -> None:
        if self._rows("SELECT terms FROM facts")[0][0] != self.terms.name + self.share.encode():
            raise DataError(
                f"{self.folder}: holds shares of another agreement, or of the other server; choose another folder"
            )

    def close(self) -> None:
        """Let go of the journal."""
        self.journal.close()

    def status(self) -> Status:
        """What a page may show, of one moment."""
        count = "(SELECT COUNT(*) FROM messages WHERE state"
        added, out, left_out, waiting, batches = self._rows(
            f"SELECT {count} = ?1 AND operation = ?2), {count} = ?1 AND operation = ?3), "
            f"(SELECT COUNT(*) FROM contributions WHERE out = ?4), {count} < ?1), (SELECT batches FROM facts)",
            *(OPENED, int(Operation.ADD), int(Operation.TAKE_OUT), LEFT_OUT),
        )[0]
        return Status(added - out - left_out, waiting, batches)

    @staticmethod
    def entry(name: bytes, operation: int, contribution: bytes) -> bytes:
        """[`ENTRY`] what b asks a about a message: all that its head says of it."""
        return name + bytes([operation]) + contribution

    def known(self, messages: Sequence[bytes]) -> list[bytes]:
        """Names of those of some messages, as `entry` writes them, that are here and not opened (share a).

        A message that does something else here, or to another contribution, is not that message: a tab that sends each
        server its own could make b wait for a batch that a never opens.
        """
        with self.guard:
            find = "SELECT 1 FROM messages WHERE name = ? AND operation = ? AND contribution = ? AND state = ?"
            heads = ((one[:NAME], one[NAME], one[NAME + 1 :]) for one in messages)
            return [head[0] for head in heads if self._rows(find, *head, WAITING)]

    def total(self) -> Any:
        """[n] int64: the sum of everything that was opened and counts (share b)."""
        return self.opened()[0]

    def opened(self) -> tuple[Any, Status]:
        """The sum and its status, of one moment."""
        for _ in range(_ATTEMPTS):
            before = self._generation()
            try:
                with self._readable():
                    total, status = self._by_group().sum(0), self.status()
            except DataError:
                if self._generation() == before:
                    raise
                continue
            if self._generation() == before:
                return total, status
        raise OutputError(f"{self.folder}: changes all the time; read it later")

    def _by_group(self) -> npt.NDArray[np.int64]:
        """[groups, n]; zeros before the first batch, and an error where a file is missing later."""
        path = self.folder / f"total.{self._generation()}.i64"
        if not self._rows("SELECT batches FROM facts")[0][0]:
            return np.zeros((self.terms.groups, self.terms.size), dtype=np.int64)
        found: npt.NDArray[np.int64] = self._numbers(path, "<i8", self.terms.groups).astype(np.int64, copy=False)
        return found

    def _numbers(self, path: Path, kind: str, rows: int) -> Any:
        """[rows, n] of a file."""
        shape = (rows, self.terms.size)
        try:
            read = np.fromfile(path, dtype=kind)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}; bring a sound copy back") from None
        if read.size != math.prod(shape):
            raise DataError(f"{path}: {read.size:,} numbers; expected {rows:,} times {self.terms.size:,}")
        return read.reshape(shape)

    def _generation(self) -> int:
        return int(self._rows("SELECT generation FROM facts")[0][0])

    def _rows(self, line: str, *values: Any) -> list[Any]:
        with self.guard:
            return self.journal.execute(line, values).fetchall()

    def _about(self, name: bytes) -> tuple[int, bytes]:
        """Operation and contribution of a message."""
        found: tuple[int, bytes] = self._rows("SELECT operation, contribution FROM messages WHERE name = ?", name)[0]
        return found
