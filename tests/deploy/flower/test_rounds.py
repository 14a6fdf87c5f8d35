"""Rounds through Flower's link: equal to a simulation, whoever is killed; who is not enrolled is refused."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'ownview[deploy]'")

import httpx

from ownview.base.errors import MessageError
from ownview.deploy.certificates import write_authority, write_place
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelope import Envelope, Kind
from ownview.deploy.flower.gate import HEADER
from ownview.deploy.flower.grid import FlowerTransport
from ownview.deploy.flower.node import Pace
from ownview.deploy.flower.supervised import LinkProcess
from ownview.deploy.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.transport import Answering
from tests.deploy.flower.lines import PATIENT, Running, transport_to
from tests.deploy.lines import enrolled, free_port, wait_for
from tests.deploy.world import NAMES, agreement, assert_equal, replayed, write_homes


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KnownKeys]:
    return enrolled(tmp_path_factory.mktemp("certificates"), NAMES)


@pytest.fixture(scope="module")
def link(certificates: tuple[Path, KnownKeys]) -> Iterator[LinkProcess]:
    with LinkProcess(certificates[0], "127.0.0.1", free_port()) as process:
        yield process


def connected(link: LinkProcess, certificates: tuple[Path, KnownKeys]) -> FlowerTransport:
    """The coordinator's end at a link that is there and has been told all keys."""
    transport = transport_to(link, *certificates)
    wait_for(lambda: transport.places() is not None and transport.running is not None)
    return transport


class KillsTheLink:
    """A place in whose work the link is killed, so that its answer finds nobody."""

    def __init__(self, place: Answering, link: LinkProcess, number: int) -> None:
        self.place, self.link, self.number, self.killed = place, link, number, False

    def answer(self, message: bytes) -> bytes:
        asked = Envelope.unpack(message)
        if asked.kind is Kind.WORK and asked.round == self.number and not self.killed:
            self.killed = True
            assert self.link.process is not None
            self.link.process.kill()
            self.link.process.wait()
        return self.place.answer(message)


def test_rounds_equal_a_simulation_with_the_link_killed_and_the_server_started_again(
    link: LinkProcess, certificates: tuple[Path, KnownKeys], tmp_path: Path
) -> None:
    agreed, homes, server = (
        agreement("fedmf", clients="0.5", room=12),
        write_homes(tmp_path, users=4),
        tmp_path / "server",
    )
    places = {name: Place(home) for name, home in homes.items()}
    killer = KillsTheLink(places["west"], link, 2)
    running = [
        Running(killer if name == "west" else place, link.port, certificates[0], name) for name, place in places.items()
    ]
    transport = transport_to(link, *certificates)
    wait_for(lambda: list(transport.places()) == sorted(NAMES))
    Coordinator(agreed, transport, server, PATIENT).run(2)
    assert killer.killed
    transport.close()

    # Another server goes on at the same link, from the checkpoint.
    transport = transport_to(link, *certificates)
    wait_for(lambda: list(transport.places()) == sorted(NAMES))
    coordinator = Coordinator(agreed, transport, server, PATIENT)
    assert coordinator.done == 2
    coordinator.run(3)
    for one in running:
        one.end()
        assert one.error is None
    transport.close()
    assert_equal(agreed, coordinator, places, replayed(agreed, homes, server))


def test_an_unknown_key_is_refused_in_one_line(
    link: LinkProcess, certificates: tuple[Path, KnownKeys], tmp_path: Path
) -> None:
    transport = connected(link, certificates)
    write_place(certificates[0], "stranger")  # of the same authority, but nobody has enrolled it
    place = Place(write_homes(tmp_path, ("stranger",), users=2)["stranger"])
    stranger = Running(place, link.port, certificates[0], "stranger", Pace(patience=1.0))
    stranger.thread.join(60)
    assert isinstance(stranger.error, MessageError)
    assert "does not know the key of this place" in str(stranger.error)
    assert transport.places() == []
    transport.close()


def test_a_link_of_another_authority_is_refused_in_one_line(
    link: LinkProcess, certificates: tuple[Path, KnownKeys], tmp_path: Path
) -> None:
    transport = connected(link, certificates)
    write_authority(tmp_path / "other")
    write_place(tmp_path / "other", "east")
    place = Place(write_homes(tmp_path, ("east",), users=2)["east"])
    lost = Running(place, link.port, tmp_path / "other", "east")
    lost.thread.join(60)
    assert isinstance(lost.error, MessageError)
    assert "another authority" in str(lost.error)
    transport.close()


def test_the_gate_is_closed_to_whoever_does_not_know_the_secret(
    link: LinkProcess, certificates: tuple[Path, KnownKeys]
) -> None:
    transport = connected(link, certificates)
    asked = f"https://127.0.0.1:{link.port}/v1/control/list-nodes"
    with httpx.Client(verify=ssl.create_default_context(cafile=certificates[0] / "ca.crt")) as client:
        assert client.post(asked).status_code == httpx.codes.NOT_FOUND
        assert client.post(asked, headers={HEADER: "guessed"}).status_code == httpx.codes.NOT_FOUND
        assert client.post(asked, headers={HEADER: link.secret}).status_code != httpx.codes.NOT_FOUND
    transport.close()
