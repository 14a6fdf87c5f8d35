"""Thousands of hostile messages against a running coordinator and running places: no process ends, nothing changes.

Before, one of the first few dozen ended the coordinator with a traceback.
"""

from __future__ import annotations

import builtins
import random
import re
from pathlib import Path

import pytest
import torch

from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind, digest_of
from ownview.deploy.place import Place
from ownview.deploy.transport import Answering
from ownview.messages.limits import LONGEST_LINE
from ownview.round.conduct import Round
from tests.deploy.in_process import InProcess
from tests.deploy.places.test_places import Noted
from tests.deploy.world import agreement, write_homes
from tests.security.flood import damaged, hostile
from tests.security.hostile import BRIEF, EVIL

ROUNDS = 4
INTERNAL = re.compile("|".join(rf"\b{name}\b" for name in dir(builtins) if name.endswith(("Error", "Exception"))))
"""Names of errors that no message may lead to: what is wrong with a message is a `MessageError`."""
FLAT = 1 << 27
"""Bytes by which a process may grow while it is flooded; a single one of the old attacks took more."""


class Flooding:
    """An enrolled place that lies in every answer but to be told the terms."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.place, self.chance = Place(home), chance
        self.known: tuple[str, Envelope] | None = None
        self.plainly_wrong = False
        self.sent = 0

    def answer(self, message: bytes) -> bytes:
        digest = digest_of(message)
        if self.known is None or self.known[0] != digest:
            self.known = digest, Envelope.unpack(self.place.answer(message))
        honest = self.known[1]
        if honest.kind is Kind.TERMS:
            return honest.pack()
        self.sent += 1
        if self.plainly_wrong or self.chance.random() < 0.3:
            return damaged(honest.pack(), self.chance)
        return hostile(honest, self.chance)


class Said:
    """Lines that a coordinator or a place said: how many, the longest, and those that no message may lead to."""

    def __init__(self) -> None:
        self.count, self.longest = 0, 0
        self.internal: list[str] = []

    def __call__(self, line: str) -> None:
        self.count, self.longest = self.count + 1, max(self.longest, len(line))
        if INTERNAL.search(line) and "MessageError" not in line:
            self.internal.append(line)


def _flood(folder: Path, messages: int) -> None:
    """Half of the messages go to the coordinator, half to places, between and beside honest rounds."""
    alone = _undisturbed(folder / "alone")
    chance, said = random.Random(7), Said()
    homes = write_homes(folder, ("east", "north", "south", EVIL), users=2)
    evil = Flooding(homes[EVIL], chance)
    noted = {name: Noted(homes[name]) for name in ("east", "north")}
    places: dict[str, Answering] = {**noted, EVIL: evil}
    coordinator = Coordinator(agreement(), InProcess(places), folder / "server", BRIEF, said)
    said_by_places, lied_to = Said(), _lied_to(homes["south"], folder)
    lied_to.place.say = noted["east"].place.say = said_by_places
    grown, reached = 0, 0
    for number in range(1, ROUNDS + 1):
        evil.plainly_wrong = True
        assert list(coordinator.round(number).counted) == ["east", "north"]
        evil.plainly_wrong = False
        while evil.sent < number * messages // (2 * ROUNDS):
            coordinator.attendance.absences.end()
            coordinator.attendance.greeted.discard(EVIL)
            coordinator.attendance.greet()
            mine = coordinator.register.places.get(EVIL)
            if mine:
                coordinator.devices.asked = {EVIL: mine}
                coordinator.devices.work(Round(coordinator.server, number, torch.tensor(mine)))
        while reached < number * messages // (2 * ROUNDS):
            reached += 2
            asked = chance.choice(noted["east"].asked)
            assert Envelope.unpack(noted["east"].place.answer(damaged(asked, chance))).kind is Kind.REFUSED
            lie = hostile(Envelope.unpack(chance.choice(lied_to.asked)), chance)
            Envelope.unpack(lied_to.place.answer(lie))
        grown = grown or _memory()
    assert evil.sent >= messages // 2
    assert _memory() - grown < FLAT
    expected, found = alone.server.pack(), coordinator.server.pack()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    for one in (said, said_by_places):
        assert one.count > messages // 20
        assert one.longest < LONGEST_LINE + 60
        assert one.internal == []
    Place(homes["south"])  # what it was told has spoilt none of its files


def _undisturbed(folder: Path) -> Coordinator:
    homes = write_homes(folder, ("east", "north"), users=2)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreement(), InProcess(places), folder / "server", BRIEF)
    for number in range(1, ROUNDS + 1):
        coordinator.round(number)
    return coordinator


def _lied_to(home: Path, folder: Path) -> Noted:
    """A place after two rounds of a server that begins to lie then."""
    noted = Noted(home)
    coordinator = Coordinator(agreement(), InProcess({"south": noted}), folder / "liar", BRIEF)
    coordinator.run(2)
    return noted


def _memory() -> int:
    """Bytes that this process holds; 0 where the system does not tell."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * 4096 if file.is_file() else 0


def test_300_hostile_messages_change_nothing(tmp_path: Path) -> None:
    _flood(tmp_path, 300)


@pytest.mark.slow
def test_20000_hostile_messages_change_nothing(tmp_path: Path) -> None:
    _flood(tmp_path, 20_000)
