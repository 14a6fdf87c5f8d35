"""Killed at any moment, a store has what was acknowledged, once; on SQLite and on PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from ownview.data import Interactions
from ownview.sums.additions import merge, update
from ownview.sums.journal import Journal
from ownview.sums.solving import solved
from ownview.sums.store import Store
from tests.apart import PATIENCE
from tests.sums import postgres
from tests.sums.worlds import added_up, by_item, empty, rows

KILLS = 100
Histories = dict[str, list[tuple[str, int]]]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    if why := postgres.lacking():
        pytest.skip(why)
    with postgres.server() as found:
        yield found


def _one(number: int) -> tuple[str, str]:
    """What is done in step `number`: update a person, forget a person, merge, or solve."""
    random = np.random.default_rng(number)
    what = ["update", "update", "update", "forget", "merge", "solve"][int(random.integers(6))]
    return what, f"p{int(random.integers(6))}"


def _row(number: int, name: str) -> Interactions:
    """One row, of a time that no other step has; some items are new."""
    item = f"i{number % 23}"
    one = np.array([number], dtype=np.int64)
    return Interactions.from_rows("row", np.array([name], dtype=object), np.array([item], dtype=object), timestamp=one)


def _work(folder: Path, url: str | None, other: Path, first: int, sender: Connection) -> None:
    with Store.writing(folder, url) as store, Store.reading(other) as theirs:
        number = first
        while True:
            what, name = _one(number)
            if what == "update":
                update(store, _row(number, name), "row")
            elif what == "forget" and store.history(name) is not None:
                store.forget(name)
            elif what == "merge":
                merge(store, theirs.snapshot(), theirs)
            elif what == "solve" and store.names():
                solved(store, store.snapshot())
            sender.send(number)
            number += 1


def _expected(before: Histories, other: Histories, number: int) -> Histories:
    """Histories after one more step."""
    what, name = _one(number)
    after = {who: list(kept) for who, kept in before.items()}
    if what == "update":
        after.setdefault(name, []).append((f"i{number % 23}", number))
    elif what == "forget":
        after.pop(name, None)
    elif what == "merge":
        for who, kept in other.items():
            mine = after.setdefault(who, [])
            mine += [one for one in kept if one not in mine]
    return after


def _histories(store: Store) -> Histories:
    now = store.snapshot()
    found: Histories = {}
    for name, one in now.people.items():
        assert one.times is not None
        ids = [now.items[where][0] for where in one.places.tolist()]
        found[name] = list(zip(ids, one.times.tolist(), strict=True))
    return found


def test_a_hundred_kills_lose_nothing_and_count_nothing_twice(url: str | None, tmp_path: Path) -> None:
    folder = empty(tmp_path / "store", "fedease", url)
    with Store.writing(empty(tmp_path / "other", "fedease")) as theirs:
        update(theirs, rows(np.random.default_rng(0), ["p1", "x"], 9, 12), "theirs")
        other = _histories(theirs)
    random, number, state = np.random.default_rng(3), 0, dict[str, list[tuple[str, int]]]()
    cut = done = 0
    for _ in range(KILLS):
        ours, sender = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(
            target=_work, args=(folder, url, tmp_path / "other", number, sender)
        )
        child.start()
        sender.close()
        assert ours.poll(60), "the first step takes no minute"
        time.sleep(float(random.uniform(0, 0.1)))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        for acknowledged in _said(ours):
            assert acknowledged == number
            state, number, done = _expected(state, other, number), number + 1, done + 1
        ours.close()
        with Store.writing(folder, url) as store:
            found = _histories(store)
            if found != state:  # the step that was killed had been committed
                state, number, cut = _expected(state, other, number), number + 1, cut + 1
            assert found == state, f"after {number} steps"
            now = store.snapshot()
            assert by_item(now) == added_up(store, now), f"after {number} steps"
            assert sorted(path.name for path in folder.glob("redo-*")) == []
    assert done >= KILLS
    assert cut > 0, "no kill came between a commit and its word"


def _said(ours: Connection) -> Iterator[int]:
    """What the child said before it died; a word that was cut off does not count."""
    while True:
        try:
            yield ours.recv()
        except (EOFError, OSError):
            return


def test_both_journals_hold_the_same(tmp_path: Path) -> None:
    if why := postgres.lacking():
        pytest.skip(why)
    random = np.random.default_rng(4)
    data = rows(random, ["a", "b", "c"], 7, 30)
    found = []
    with postgres.server() as url:
        for place in (None, url):
            folder = empty(tmp_path / ("sqlite" if place is None else "postgres"), "markov", place)
            with Store.writing(folder, place) as store:
                update(store, data, "rows")
                store.forget("b")
                lines = [(line.budget, line.taken_out, line.digest) for line in store.journal.contributions()]
                now = store.snapshot()
                found.append((by_item(now), sorted(lines), sorted(now.people)))
                assert store.journal.lock()
            if place is not None:
                assert place.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
                with Store.writing(folder, place) as store:
                    store.journal.drop()
    assert found[0] == found[1]


def test_a_writer_waits_until_the_lock_of_a_killed_one_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := postgres.lacking():
        pytest.skip(why)
    monkeypatch.setattr("ownview.sums.journal._NOTICED", PATIENCE)
    with postgres.server() as url:
        folder = empty(tmp_path / "store", "markov", url)
        killed = Journal.opened(folder, url)
        assert killed.lock()
        noticed = threading.Timer(0.5, killed.close)
        noticed.start()
        with Store.writing(folder, url) as store:
            store.journal.drop()
        noticed.join()
