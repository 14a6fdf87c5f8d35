"""A place that is revoked is refused from its next request on, also by a server that is started again.

Before: there was no way to revoke a place, and a connection that was open stayed open whatever keys.json said.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ownview.base.errors import MessageError
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.https.polling import attend
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.lines import Running, enrolled, wait_for
from tests.deploy.world import agreement, write_homes

NAMES = ("east", "north")


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[Path, KnownKeys]:
    return enrolled(tmp_path / "certificates", NAMES)


@pytest.fixture
def line(certificates: tuple[Path, KnownKeys]) -> Iterator[HttpsTransport]:
    made = HttpsTransport(("127.0.0.1", 0), *certificates)
    yield made
    made.close()


class Revoked:
    """A place that works on a round and is revoked before it can answer."""

    def __init__(self, home: Path, keys: Path, number: int) -> None:
        self.place, self.keys, self.number = Place(home), KnownKeys(keys), number

    def answer(self, message: bytes) -> bytes:
        asked = Envelope.unpack(message)
        if (asked.kind, asked.round) == (Kind.WORK, self.number):
            self.keys.revoke("north")
        return self.place.answer(message)


def test_a_place_is_revoked_in_mid_round_and_the_round_goes_on_without_it(
    certificates: tuple[Path, KnownKeys], line: HttpsTransport, tmp_path: Path
) -> None:
    """By another process, so to speak: what the server knows of keys is in the file."""
    folder, keys = certificates
    homes = write_homes(tmp_path, NAMES, users=2)
    revoked = Running(Revoked(homes["north"], keys.file, 2), line.address, folder, "north")
    running = Running(Place(homes["east"]), line.address, folder, "east")
    wait_for(lambda: list(line.places()) == sorted(NAMES))
    coordinator = Coordinator(
        agreement(), line, tmp_path / "server", CoordinatorSettings(resend=0.1, greeting=5, deadline=5)
    )
    coordinator.run(3)
    revoked.thread.join(60)
    running.end()
    assert isinstance(revoked.error, MessageError)
    assert "the key of place 'north' was revoked at" in str(revoked.error)
    log = read_log(coordinator.folder / "participants.jsonl")
    assert [sorted(one.counted) for one in log] == [["east", "north"], ["east"], ["east"]]
    assert not running.error


def test_a_waiting_place_learns_it_and_a_new_server_knows_it(
    certificates: tuple[Path, KnownKeys], line: HttpsTransport
) -> None:
    folder, keys = certificates

    class Unasked:
        def answer(self, message: bytes) -> bytes:
            raise AssertionError(message)

    waiting = Running(Unasked(), line.address, folder, "north")
    wait_for(lambda: list(line.places()) == ["north"])
    KnownKeys(keys.file).revoke("north", "12ab")
    assert list(line.places()) == []
    line.send("north", b"a question")
    ((place, answer),) = line.receive(60)
    assert (place, Envelope.unpack(answer).kind) == ("north", Kind.REFUSED)
    line.close()
    waiting.stop.set()
    again = HttpsTransport(("127.0.0.1", 0), folder, KnownKeys(keys.file))
    with pytest.raises(MessageError, match="was revoked at"):
        attend(Unasked(), again.address, folder, "north", threading.Event())
    again.close()
    assert {one.name: one.serial for one in keys.revoked().values()} == {"north": "12ab"}
