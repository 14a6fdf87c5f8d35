"""The journal of a store: who has added, when, for how much budget, what is taken out; and the state of the arrays.

SQLite in the store's folder, or PostgreSQL by its URL (extra `postgres`), the same tables. A transaction is there whole
or not at all, also after a kill. A contribution's id is drawn at random and is no name; names and histories stand in a
table of their own, from which a forgotten person's row is removed and overwritten.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from ownview.base.errors import OutputError, SettingError, UnwrittenError
from ownview.base.extras import how_to_install
from ownview.base.files import write_json
from ownview.base.json_text import parse_json
from ownview.data.interactions import IntArray
from ownview.sums.histories import History

FILE, PLACE = "journal.sqlite", "journal.json"
ENVIRONMENT = "OWNVIEW_JOURNAL"
"""Holds the URL of a store's PostgreSQL: it may have a password in it, so no file of the store does."""

_TABLES = (
    "CREATE TABLE state (one INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE contributions (id TEXT PRIMARY KEY, added TEXT NOT NULL, changed TEXT NOT NULL, "
    "budget DOUBLE PRECISION NOT NULL, taken_out INTEGER NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE people (name TEXT PRIMARY KEY, id TEXT NOT NULL, history BLOB NOT NULL)",
    "CREATE TABLE items (place INTEGER PRIMARY KEY, item TEXT NOT NULL, about TEXT NOT NULL, people INTEGER NOT NULL)",
)
_TOGETHER = 500
"""Values of one statement."""

_NOTICED = 10.0
"""Seconds until PostgreSQL has surely let go of what a killed process held."""

_SCHEMA = re.compile(r"ownview_[0-9a-f]{16}")


@dataclass(frozen=True)
class State:
    """Of the arrays.

    Args:
        generation: of the files that hold the sums.
        items: places that they have room for.
        sequence: goes up with every change.
        redo: name of a file of cells that may not have reached the arrays yet; empty where all have.
        rows: that ever came; numbers of new rows begin with it.
    """

    generation: int = 1
    items: int = 0
    sequence: int = 0
    redo: str = ""
    rows: int = 0


class Contribution(NamedTuple):
    """A line of the journal."""

    id: str
    added: str
    changed: str
    budget: float
    taken_out: bool
    digest: str


class Journal:
    """Tables of one store; see `opened`.

    Args:
        connection: of the database's own driver, without autocommit.
        source: what errors call it.
        errors: what the driver raises.
        mark: that stands for a value in its statements.
    """

    def __init__(self, connection: Any, source: str, errors: type[Exception], mark: str) -> None:
        self._connection, self.source, self._errors, self._mark = connection, source, errors, mark

    @classmethod
    def create(cls, folder: Path, url: str | None, name: str) -> Journal:
        """A new journal; `name` tells the stores of one PostgreSQL apart."""
        schema = f"ownview_{name}"
        if url is None:
            (folder / FILE).touch()
        write_json(folder / PLACE, {"kind": "sqlite" if url is None else "postgres", "schema": schema})
        journal = cls.opened(folder, url)
        binary = "BLOB" if url is None else "BYTEA"
        with journal.transaction():
            if url is not None:
                journal.run(f"CREATE SCHEMA {schema}")
            for table in _TABLES:
                journal.run(table.replace("BLOB", binary))
            journal.run("INSERT INTO state VALUES (1, ?)", json.dumps(asdict(State())))
        return journal

    @classmethod
    def opened(cls, folder: Path, url: str | None = None) -> Journal:
        """The journal of a store; the URL of its PostgreSQL from $OWNVIEW_JOURNAL where None."""
        try:
            place = dict(parse_json((folder / PLACE).read_text(encoding="utf-8")))
            kind, schema = place["kind"], str(place["schema"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{folder / PLACE}: cannot be read: {error}; expected a store (ownview sums)") from None
        if not _SCHEMA.fullmatch(schema) or kind not in ("sqlite", "postgres"):
            raise OutputError(f"{folder / PLACE}: is damaged; bring a sound copy back")
        if kind == "sqlite":
            return cls._sqlite(folder / FILE)
        url = url or os.environ.get(ENVIRONMENT)
        if not url:
            raise SettingError(f"{folder}: its journal is in PostgreSQL; expected its URL in {ENVIRONMENT}")
        return cls._postgres(url, schema)

    @classmethod
    def _sqlite(cls, path: Path) -> Journal:
        if not path.is_file():  # SQLite would make an empty one
            raise OutputError(f"{path}: is not there; bring a sound copy back")
        try:
            connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=ON")  # what is deleted is overwritten
        except sqlite3.Error as error:
            raise _output_error(str(path), error) from error
        return cls(connection, str(path), sqlite3.Error, "?")

    @classmethod
    def _postgres(cls, url: str, schema: str) -> Journal:
        address = _address(url)
        where = f"PostgreSQL at {address.get('host') or 'this machine'}"
        try:
            driver = importlib.import_module("pg8000.dbapi")
        except ImportError:
            raise SettingError(f"a journal in PostgreSQL needs pg8000: {how_to_install('postgres')}") from None
        try:
            connection = driver.connect(**address, timeout=30)
            connection.autocommit = True
            connection.cursor().execute(f"SET search_path TO {schema}")
        except (driver.Error, OSError) as error:
            raise _output_error(where, error) from None
        return cls(connection, where, driver.Error, "%s")

    @property
    def overwrites(self) -> bool:
        """Whether what is deleted is gone from the database's files: true of SQLite."""
        return self._mark == "?"

    def run(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        """Rows of a statement, in which ? stands for each value."""
        try:
            cursor = self._connection.cursor()
            cursor.execute(statement.replace("?", self._mark), values)
            return list(cursor.fetchall()) if cursor.description else []
        except self._errors as error:
            raise _output_error(self.source, error) from error

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """A statement for every row of values."""
        if rows:
            try:
                self._connection.cursor().executemany(statement.replace("?", self._mark), rows)
            except self._errors as error:
                raise _output_error(self.source, error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing."""
        self.run("BEGIN IMMEDIATE" if self.overwrites else "BEGIN")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            with suppress(OutputError):  # a full disk has rolled it back already
                self.run("ROLLBACK")
            raise

    def state(self) -> State:
        """As the last transaction left it."""
        rows = self.run("SELECT value FROM state WHERE one = 1")
        try:
            return State(**parse_json(rows[0][0]))
        except (IndexError, TypeError, ValueError):
            raise OutputError(f"{self.source}: is damaged: it has no state; bring a sound copy back") from None

    def set_state(self, **changes: Any) -> None:
        """Within a transaction."""
        self.run("UPDATE state SET value = ? WHERE one = 1", json.dumps(asdict(replace(self.state(), **changes))))

    def contributions(self) -> list[Contribution]:
        """All lines, the oldest first."""
        rows = self.run("SELECT id, added, changed, budget, taken_out, digest FROM contributions ORDER BY added, id")
        return [Contribution(row[0], row[1], row[2], row[3], bool(row[4]), row[5]) for row in rows]

    def items(self) -> dict[int, tuple[str, dict[str, str]]]:
        """By place: id, and columns about it."""
        rows = self.run("SELECT place, item, about FROM items ORDER BY place")
        try:
            columns = parse_json(f"[{','.join(row[2] for row in rows)}]")  # one text is read ten times as fast as many
            return {int(row[0]): (row[1], dict(about)) for row, about in zip(rows, columns, strict=True)}
        except (ValueError, TypeError) as error:
            raise OutputError(f"{self.source}: is damaged: items: {error}; bring a sound copy back") from None

    def ids(self, people: Iterable[History]) -> dict[int, str]:
        """By place, ids of the items that some people have."""
        places = sorted({place for one in people for place in one.places.tolist()})
        found: dict[int, str] = {}
        for first in range(0, len(places), _TOGETHER):
            some = places[first : first + _TOGETHER]
            marks = ", ".join("?" * len(some))
            found |= {
                int(row[0]): row[1]
                for row in self.run(f"SELECT place, item FROM items WHERE place IN ({marks})", *some)
            }
        return found

    def last_place(self) -> int:
        """The highest place of an item; -1 where there is none."""
        return int(self.run("SELECT COALESCE(MAX(place), -1) FROM items")[0][0])

    def note(self, contribution: str, made: str, budget: float, *, taken_out: bool = False) -> None:
        """A new line; `made` is the contribution's digest. Within a transaction, as all that is noted."""
        line = (contribution, _now(), _now(), budget, int(taken_out), made)
        self.run("INSERT INTO contributions VALUES (?, ?, ?, ?, ?, ?)", *line)

    def note_taken_out(self, contribution: str, places: IntArray) -> None:
        """That a contribution does not count any more; items that were in it alone go too."""
        self.run("UPDATE contributions SET taken_out = 1, changed = ?, digest = '' WHERE id = ?", _now(), contribution)
        self.count(places, -1)
        self.run("DELETE FROM items WHERE people <= 0")

    def note_items(self, items: Mapping[int, tuple[str, dict[str, str]]]) -> None:
        """New items, without rows so far."""
        rows = [(place, item, json.dumps(about), 0) for place, (item, about) in items.items()]
        self.run_many("INSERT INTO items VALUES (?, ?, ?, ?)", rows)

    def note_people(
        self, known: Mapping[str, History], people: Mapping[str, History], made: Mapping[str, str], budget: float
    ) -> None:
        """Histories that count from now on.

        Args:
            known: of those who were there.
            people: of all that come.
            made: digests of their contributions.
            budget: of each contribution.
        """
        for name, one in people.items():
            had = known[name].places if name in known else one.places[:0]
            self.count(np.setdiff1d(had, one.places), -1)
            self.count(np.setdiff1d(one.places, had), 1)
        for name in people:
            rows = self.run("SELECT id FROM people WHERE name = ?", name)
            if rows:
                change = "UPDATE contributions SET changed = ?, budget = budget + ?, digest = ? WHERE id = ?"
                self.run(change, _now(), budget, made[name], rows[0][0])
            mine = rows[0][0] if rows else secrets.token_hex(16)
            if not rows:
                self.note(mine, made[name], budget)
            self.run("DELETE FROM people WHERE name = ?", name)
            self.run("INSERT INTO people VALUES (?, ?, ?)", name, mine, people[name].packed())

    def note_forgotten(self, name: str, history: History) -> None:
        """Nothing of a person stays but that a contribution was taken out; items of that person alone go too."""
        self.note_taken_out(self.run("SELECT id FROM people WHERE name = ?", name)[0][0], history.places)
        self.run("DELETE FROM people WHERE name = ?", name)

    def count(self, places: IntArray, more: int) -> None:
        """So many more contributions have each item."""
        rows = [(more, place) for place in np.unique(places).tolist()]
        self.run_many("UPDATE items SET people = people + ? WHERE place = ?", rows)

    def clean(self) -> None:
        """Leave nothing of deleted rows in the database's own tables."""
        if not self.overwrites:
            self.run("VACUUM FULL people")
            self.run("VACUUM FULL items")

    def lock(self) -> bool:
        """Whether no writer on another machine has this journal, and this one has it now.

        Of a writer that was killed the server lets go when it sees that the connection is gone: that is waited for.
        """
        until = time.monotonic() + _NOTICED
        while not self.overwrites and not self.run("SELECT pg_try_advisory_lock(hashtext(current_schema()))")[0][0]:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def drop(self) -> None:
        """Remove everything of this store from a database that others may use too."""
        if not self.overwrites:
            schema = self.run("SELECT current_schema()")[0][0]
            self.run(f"DROP SCHEMA {schema} CASCADE")

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _address(url: str) -> dict[str, Any]:
    """What the driver asks for, of postgresql://user:password@host:port/database; ?host=FOLDER is a socket's folder."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError as error:
        raise SettingError(
            f"{ENVIRONMENT}: not a URL: {error}; expected postgresql://user@host:5432/database"
        ) from None
    if parts.scheme not in ("postgresql", "postgres") or not parts.username:
        raise SettingError(f"{ENVIRONMENT}: expected postgresql://user@host:5432/database")
    address: dict[str, Any] = {"user": unquote(parts.username), "database": unquote(parts.path.strip("/")) or None}
    if parts.password is not None:
        address["password"] = unquote(parts.password)
    folder = dict(parse_qsl(parts.query)).get("host", "")
    if folder.startswith("/"):
        return {**address, "unix_sock": f"{folder}/.s.PGSQL.{port}"}
    return {**address, "host": parts.hostname or "localhost", "port": port}


def _output_error(source: str, error: Exception) -> OutputError:
    why = " ".join(str(error).split())
    if "disk is full" in why or "disk I/O error" in why or "No space left" in why:
        return UnwrittenError(f"{source}: cannot be written: {why}; make room or choose another place")
    if "Could not decode" in why:  # what follows may be a person's name
        why = "text that is no UTF-8"
    if any(word in why for word in ("malformed", "not a database", "no such table", "no UTF-8")):
        return OutputError(f"{source}: is damaged: {why}; bring a sound copy back")
    return OutputError(f"{source}: {why}")
