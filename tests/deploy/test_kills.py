"""Places and coordinator killed at random writes, over HTTPS: no lost round, no diverging state, no repair."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.lines import Running, enrolled, wait_for
from tests.deploy.world import NAMES, agreement, assert_equal, replayed, write_homes

SERVER = threading.main_thread().name
STEADY = CoordinatorSettings(resend=0.2, greeting=30.0, deadline=30.0)


HASTY = CoordinatorSettings(resend=0.2, greeting=30.0, deadline=0.15, quorum=0.3)
"""A round ends after a moment where a third has answered: who is late, or is away, is not counted."""


class Kill(BaseException):
    """What ends a process ends everything in it."""


class Killer:
    """Kills the next process of the list at one of its next writes, just before or just after it takes place."""

    def __init__(self, kills: int, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan = [
            (chance.choice([*NAMES, SERVER]), chance.randint(1, 12), chance.random() < 0.5) for _ in range(kills)
        ]
        self.done = 0
        self.guard = threading.Lock()
        for owner, name in ((os, "fsync"), (Path, "replace")):
            self._watch(owner, name, monkeypatch)

    @property
    def left(self) -> int:
        return len(self.plan) - self.done

    def _watch(self, owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        plain: Callable[..., object] = getattr(owner, name)

        def write(*given: object) -> object:
            before, after = self._next()
            if before:
                raise Kill(name)
            found = plain(*given)
            if after:
                raise Kill(name)
            return found

        monkeypatch.setattr(owner, name, write)

    def _next(self) -> tuple[bool, bool]:
        with self.guard:
            if not self.left or self.plan[self.done][0] != threading.current_thread().name:
                return False, False
            victim, writes, before = self.plan[self.done]
            self.plan[self.done] = victim, writes - 1, before
            if writes > 1:
                return False, False
            self.done += 1
            return before, not before


class Late:
    """A place that often answers late, and now and then not at all."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place, self.chance, self.late = place, chance, 0

    def answer(self, message: bytes) -> bytes:
        found = self.place.answer(message)
        if Envelope.unpack(message).kind is Kind.WORK:
            slow = self.chance.random()
            self.late += slow < 0.3
            time.sleep(1.0 if slow < 0.05 else 0.3 if slow < 0.3 else 0.0)
        return found


class Town:
    """Three places that are started again whenever they were killed, and a coordinator that is as well."""

    def __init__(
        self, folder: Path, certificates: tuple[Path, KnownKeys], conduct: CoordinatorSettings = STEADY
    ) -> None:
        self.conduct, self.chance = conduct, random.Random(5)
        self.agreed, self.homes, self.folder = agreement("fedmf"), write_homes(folder, users=2), folder / "server"
        self.certificates, self.said = certificates, list[str]()
        self.transport = HttpsTransport(("127.0.0.1", 0), *certificates)
        self.places: dict[str, Place] = {}
        self.running: dict[str, Running] = {}
        self.ending = threading.Event()
        self.watch = threading.Thread(target=self._keep_alive, name="watch", daemon=True)
        self.watch.start()

    def _keep_alive(self) -> None:
        while not self.ending.wait(0.01):
            for name in NAMES:
                if name not in self.running or not self.running[name].thread.is_alive():
                    self.places[name] = Place(self.homes[name], self.said.append)
                    place = self.places[name]
                    answering = place if self.conduct is STEADY else Late(place, self.chance)
                    self.running[name] = Running(answering, self.transport.address, self.certificates[0], name)

    def run(self, more: Callable[[int], bool]) -> Coordinator:
        """Rounds for as long as there shall be more."""
        while True:
            try:
                coordinator = Coordinator(self.agreed, self.transport, self.folder, self.conduct, self.said.append)
                while more(coordinator.done):
                    self._gather()
                    coordinator.round(coordinator.done + 1)
                self._gather()
                coordinator.share()
            except Kill:
                self.transport.close()
                self.transport = HttpsTransport(self.transport.address, *self.certificates)
            else:
                return coordinator

    def _gather(self) -> None:
        wait_for(lambda: len(self.transport.places()) == len(NAMES))

    def end(self) -> None:
        self.ending.set()
        self.watch.join()
        self.transport.close()
        for one in self.running.values():
            one.end()


@pytest.mark.parametrize(("kills", "seed"), [(5, 1), pytest.param(50, 2, marks=pytest.mark.slow)])
def test_kills_at_random_writes_change_nothing(
    kills: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = enrolled(tmp_path / "certificates", NAMES)
    killer = Killer(kills, random.Random(seed), monkeypatch)
    town = Town(tmp_path, certificates)
    coordinator = town.run(lambda done: killer.left > 0 or done < 3)
    town.end()
    assert killer.left == 0
    log = read_log(town.folder / "participants.jsonl")
    assert [one.round for one in log] == list(range(1, coordinator.done + 1))
    assert all(len(one.clients) == 6 for one in log)
    assert not [line for line in town.said if "is not there" in line or "damaged" in line]
    assert_equal(town.agreed, coordinator, town.places, replayed(town.agreed, town.homes, town.folder))


@pytest.mark.parametrize(("kills", "seed"), [(5, 3), pytest.param(100, 4, marks=pytest.mark.slow)])
def test_kills_stragglers_and_dropouts_lose_nothing_and_count_nothing_twice(
    kills: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is not counted ends as if it had not worked: a simulation of the log alone has the same values."""
    certificates = enrolled(tmp_path / "certificates", NAMES)
    killer = Killer(kills, random.Random(seed), monkeypatch)
    town = Town(tmp_path, certificates, HASTY)
    coordinator = town.run(lambda done: killer.left > 0 or done < 12)
    town.end()
    assert killer.left == 0
    log = read_log(town.folder / "participants.jsonl")
    assert [one.round for one in log] == list(range(1, coordinator.done + 1)), "every round is there, and once"
    assert all(len(one.clients) == len(set(one.clients)) for one in log)
    assert any(len(one.clients) < 6 for one in log), "some were late"
    assert not [line for line in town.said if "is not there" in line or "damaged" in line]
    assert_equal(town.agreed, coordinator, town.places, replayed(town.agreed, town.homes, town.folder))
