"""Mutual TLS: the same rounds over it, and who is refused."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ownview.base.errors import DataError, MessageError
from ownview.deploy import frames, tls
from ownview.deploy.certificates import write_authority, write_place
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.keys import KnownKeys
from ownview.deploy.place import Place
from tests.deploy.lines import Running, enrolled, wait_for
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
def transport(certificates: tuple[Path, KnownKeys]) -> Iterator[tuple[tls.TlsTransport, list[str]]]:
    said: list[str] = []
    made = tls.TlsTransport(LOOPBACK, *certificates, said.append)
    yield made, said
    made.close()


def test_rounds_over_tls_equal_a_simulation_and_open_no_socket_but_loopback(
    certificates: tuple[Path, KnownKeys], connections: list[Any], tmp_path: Path
) -> None:
    agreed, homes = agreement("pfedrec", clients="0.5"), write_homes(tmp_path)
    places = {name: Place(home) for name, home in homes.items()}
    transport = tls.TlsTransport(LOOPBACK, *certificates)
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
    certificates: tuple[Path, KnownKeys], transport: tuple[tls.TlsTransport, list[str]]
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
    line.send("nobody", b"hello")
    assert line.receive(0) == []


def test_both_ends_notice_a_machine_that_has_gone_without_a_word(
    certificates: tuple[Path, KnownKeys], transport: tuple[tls.TlsTransport, list[str]]
) -> None:
    """A power cut hangs nothing up: the system has to ask, or both ends would wait for ever."""
    line, folder = transport[0], certificates[0]
    with tls._connected(frames.context(folder, "north", server=False), line.address) as place:
        frames.greet(place, place="north")
        frames.greeted(place)
        wait_for(lambda: list(line.places()) == ["north"])
        for end in (place, line.links["north"].connection):
            assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for option, value in (("TCP_KEEPIDLE", 60), ("TCP_USER_TIMEOUT", 120_000)):
                if hasattr(socket, option):
                    assert end.getsockopt(socket.IPPROTO_TCP, getattr(socket, option)) == value


def test_who_is_not_known_is_refused_with_one_line(
    certificates: tuple[Path, KnownKeys], transport: tuple[tls.TlsTransport, list[str]], tmp_path: Path
) -> None:
    line, said = transport
    folder = tmp_path / "other"
    shutil.copytree(certificates[0], folder)
    write_place(folder, "stranger")
    assert "unknown key" in _refused(line, folder, "stranger")
    for ending in (".crt", ".key"):
        shutil.copy(folder / f"east{ending}", folder / f"claims{ending}")
    assert "is not that of place 'claims'" in _refused(line, folder, "claims")
    for ending in (".crt", ".key"):
        shutil.copy(folder / f"east{ending}", folder / f"west{ending}")
    assert "is not that of place 'west'" in _refused(line, folder, "west")
    assert not line.places()
    wait_for(lambda: len(said) == 3)


def test_another_authority_is_refused_at_both_ends(
    certificates: tuple[Path, KnownKeys], transport: tuple[tls.TlsTransport, list[str]], tmp_path: Path
) -> None:
    line, said = transport
    write_authority(tmp_path)
    write_place(tmp_path, "east")
    assert "another authority" in _refused(line, tmp_path, "east")  # the place does not know the coordinator
    wait_for(lambda: len(said) == 1)
    shutil.copy(certificates[0] / "ca.crt", tmp_path)
    assert "refuses this certificate" in _refused(line, tmp_path, "east")  # nor the coordinator the place
    wait_for(lambda: len(said) >= 2)  # a line that breaks before the alert is there is tried again
    assert all("another authority" in one for one in said[1:])
    assert not line.places()


def test_another_version_is_refused_at_the_greeting(
    certificates: tuple[Path, KnownKeys],
    transport: tuple[tls.TlsTransport, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line, _ = transport
    secure = frames.context(certificates[0], "east", server=False)
    link = tls._connected(secure, line.address)
    monkeypatch.setattr(frames, "VERSION", 2)
    frames.greet(link, place="east")
    monkeypatch.undo()
    with pytest.raises(MessageError, match="speaks version 2 of messages; this program speaks version 1"):
        frames.greeted(link)
    link.close()


def test_one_key_is_one_place(certificates: tuple[Path, KnownKeys], tmp_path: Path) -> None:
    keys = KnownKeys(tmp_path / "keys.json")
    keys.enrol("north", "ab" * 32)
    keys.enrol("north", "cd" * 32)  # a new key in the place of a lost one
    assert keys.names() == {"cd" * 32: "north"}
    with pytest.raises(DataError, match="is that of place 'north'; one key, one place"):
        keys.enrol("south", "cd" * 32)


class Echo:
    """Answers with what it was asked."""

    def __init__(self, before: bytes) -> None:
        self.before = before

    def answer(self, message: bytes) -> bytes:
        return self.before + message


def _refused(line: tls.TlsTransport, certificates: Path, name: str) -> str:
    with pytest.raises(MessageError) as caught:
        tls.attend(Echo(b""), line.address, certificates, name, threading.Event())
    assert "\n" not in str(caught.value)
    return str(caught.value)
