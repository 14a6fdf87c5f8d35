"""HTTPS: the same rounds over it, who is refused, and what happens when a connection ends."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ownview.base.errors import DataError, MessageError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.https import polling
from ownview.deploy.https.app import NUMBER
from ownview.deploy.https.contexts import notice_loss, place_context
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.certificates import write_authority
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from tests.deploy.lines import Running, enrolled, wait_for, write_place
from tests.deploy.world import NAMES, QUICK, agreement, assert_equal, replayed, write_homes

LOOPBACK = ("127.0.0.1", 0)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KnownKeys]:
    return enrolled(tmp_path_factory.mktemp("certificates"), NAMES)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that any socket of a test is bound or connected to."""
    found: list[Any] = []
    for name in ("connect", "connect_ex", "bind"):
        plain = getattr(socket.socket, name)

        def noted(link: socket.socket, address: Any, plain: Callable[..., Any] = plain) -> Any:
            found.append(address)
            return plain(link, address)

        monkeypatch.setattr(socket.socket, name, noted)
    return found


@pytest.fixture
def transport(certificates: tuple[Path, KnownKeys]) -> Iterator[tuple[HttpsTransport, list[str]]]:
    said: list[str] = []
    made = HttpsTransport(LOOPBACK, *certificates, said.append)
    yield made, said
    made.close()


def test_rounds_over_https_equal_a_simulation_and_open_no_socket_but_loopback(
    certificates: tuple[Path, KnownKeys], connections: list[Any], tmp_path: Path
) -> None:
    agreed, homes = agreement("pfedrec", clients="0.5"), write_homes(tmp_path)
    places = {name: Place(home) for name, home in homes.items()}
    transport = HttpsTransport(LOOPBACK, *certificates)
    running = [Running(place, transport.address, certificates[0], name) for name, place in places.items()]
    wait_for(lambda: list(transport.places()) == sorted(NAMES))
    coordinator = Coordinator(agreed, transport, tmp_path / "server", QUICK)
    coordinator.run(3)
    transport.close()
    for one in running:
        one.end()
    assert_equal(agreed, coordinator, places, replayed(agreed, homes, tmp_path / "server"))
    assert len(connections) >= 1 + len(NAMES)
    assert {address[0] for address in connections} == {"127.0.0.1"}


def test_a_place_that_goes_is_gone_and_one_that_comes_again_takes_its_place(
    certificates: tuple[Path, KnownKeys], transport: tuple[HttpsTransport, list[str]]
) -> None:
    line, folder = transport[0], certificates[0]
    first = Running(Echo(b"first "), line.address, folder, "north")
    wait_for(lambda: list(line.places()) == ["north"])
    first.end()
    wait_for(lambda: not line.places())
    Running(Echo(b"second "), line.address, folder, "north")
    wait_for(lambda: list(line.places()) == ["north"])
    line.send("north", b"hello")
    found: list[tuple[str, bytes]] = []

    def arrived() -> bool:
        found.extend(line.receive(0.05))
        return bool(found)

    wait_for(arrived)
    assert found == [("north", b"second hello")]
    line.send("west", b"hello")  # is not there
    assert line.receive(0) == []


def test_both_ends_notice_a_machine_that_has_gone_without_a_word(
    certificates: tuple[Path, KnownKeys],
    transport: tuple[HttpsTransport, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A power cut hangs nothing up: the system has to ask, or both ends would wait for ever."""
    noticed: list[socket.socket] = []

    def noted(one: socket.socket) -> None:
        notice_loss(one)
        noticed.append(one)

    for module in ("door", "polling"):
        monkeypatch.setattr(f"ownview.deploy.https.{module}.notice_loss", noted)
    line = transport[0]
    running = Running(Echo(b""), line.address, certificates[0], "north")
    wait_for(lambda: list(line.places()) == ["north"])
    assert len(noticed) == 2
    for end in noticed:
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for option, value in (("TCP_KEEPIDLE", 60), ("TCP_USER_TIMEOUT", 120_000)):
            if hasattr(socket, option):
                assert end.getsockopt(socket.IPPROTO_TCP, getattr(socket, option)) == value
    running.end()


def test_a_message_that_was_not_answered_is_given_out_again(
    certificates: tuple[Path, KnownKeys], transport: tuple[HttpsTransport, list[str]]
) -> None:
    """A place that is started again before the server noticed gets what its earlier process had."""
    line, folder = transport[0], certificates[0]
    context = place_context(folder, "north")
    first, second = (polling.Line(line.address, context) for _ in range(2))

    def send_when_it_is_there() -> None:
        wait_for(lambda: bool(line.places()))
        line.send("north", b"hello")

    threading.Thread(target=send_when_it_is_there, daemon=True).start()
    got = first.request("GET", "next")
    if got.status == 204:  # the first answer comes at once
        got.read()
        got = first.request("GET", "next")
    assert first.read(got, 100) == b"hello"
    again = second.request("GET", "next")  # the first is still open
    assert second.read(again, 100) == b"hello"
    line.send("north", b"hello")  # it has it already
    assert second.request("POST", "answer", b"hi", again.headers[NUMBER]).status == 204
    assert line.receive(10) == [("north", b"hi")]
    twice = polling.Line(line.address, context)
    assert twice.request("POST", "answer", b"hi", again.headers[NUMBER]).status == 409
    assert line.receive(0) == []
    for one in (first, second, twice):
        one.close()


def test_an_answer_that_is_too_long_is_refused_where_it_is_made(certificates: tuple[Path, KnownKeys]) -> None:
    line = HttpsTransport(LOOPBACK, *certificates, longest=300)
    running = Running(Echo(bytes(400)), line.address, certificates[0], "north")
    wait_for(lambda: list(line.places()) == ["north"])
    line.send("north", b"hello")
    ((place, answer),) = line.receive(60)
    read = Envelope.unpack(answer)
    assert (place, read.kind) == ("north", Kind.REFUSED)
    assert "has 405 bytes; the server takes 300 at most" in read.note["why"]
    running.end()
    line.close()


def test_who_is_not_known_is_refused_with_one_line(
    certificates: tuple[Path, KnownKeys], transport: tuple[HttpsTransport, list[str]], tmp_path: Path
) -> None:
    line, said = transport
    folder = tmp_path / "other"
    shutil.copytree(certificates[0], folder)
    write_place(folder, "stranger")
    assert "unknown key" in _refused(line, folder, "stranger")
    assert not line.places()
    wait_for(lambda: len(said) == 1)
    assert said[0].startswith("127.0.0.1: refused: unknown key")


def test_another_authority_is_refused_at_both_ends(
    certificates: tuple[Path, KnownKeys], transport: tuple[HttpsTransport, list[str]], tmp_path: Path
) -> None:
    line, said = transport
    write_authority(tmp_path)
    write_place(tmp_path, "east")
    assert "does not fit" in _refused(line, tmp_path, "east")  # the place does not know the coordinator
    wait_for(lambda: len(said) == 1)
    shutil.copy(certificates[0] / "ca.crt", tmp_path)
    lines: list[str] = []
    running = Running(Echo(b""), line.address, tmp_path, "east", lines.append)  # nor the coordinator the place
    wait_for(lambda: bool(lines))
    running.end()
    assert "perhaps it does not know this place's authority" in lines[0]
    assert all("127.0.0.1: refused: a certificate that does not fit" in one for one in said[1:])
    assert not line.places()


def test_another_version_is_refused(
    certificates: tuple[Path, KnownKeys],
    transport: tuple[HttpsTransport, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(polling, "VERSION", 2)
    said = _refused(transport[0], certificates[0], "east")
    assert said == "'GET /v2/next': this program speaks version 1 of messages"


def test_one_key_is_one_place(certificates: tuple[Path, KnownKeys], tmp_path: Path) -> None:
    keys = KnownKeys(tmp_path / "keys.json")
    keys.enrol("north", "ab" * 32)
    keys.enrol("north", "cd" * 32)  # a new key in the place of a lost one
    assert keys.names() == {"cd" * 32: "north"}
    with pytest.raises(DataError, match="is that of place 'north'; one key, one place"):
        keys.enrol("south", "cd" * 32)
    keys.revoke("north")
    with pytest.raises(DataError, match="was revoked; expected a new key"):
        keys.enrol("north", "cd" * 32)


class Echo:
    """Answers with what it was asked."""

    def __init__(self, before: bytes) -> None:
        self.before = before

    def answer(self, message: bytes) -> bytes:
        return self.before + message


def _refused(line: HttpsTransport, certificates: Path, name: str) -> str:
    with pytest.raises(MessageError) as caught:
        polling.attend(Echo(b""), line.address, certificates, name, threading.Event())
    assert "\n" not in str(caught.value)
    return str(caught.value)
