"""Clients and servers as processes of their own, killed by the system and started again."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.folders import Plan, create_server_folder
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.place import Place
from ownview.deploy.places.advice import advise
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.in_process import InProcess
from tests.deploy.lines import PATIENCE, Running, enrolled, free_port, serving, started, wait_for, write_place
from tests.deploy.world import agreement, assert_equal, replayed, write_homes

ONE = ("north",)


@pytest.mark.slow
def test_a_client_s_process_is_killed_in_mid_round_and_goes_on(tmp_path: Path) -> None:
    certificates, keys = enrolled(tmp_path / "certificates", ONE)
    homes, agreed = write_homes(tmp_path, ONE, users=3), agreement("fedrap")
    transport = HttpsTransport(("127.0.0.1", 0), certificates, keys)
    process = started(homes["north"], transport.address, certificates)
    coordinator = Coordinator(
        agreed, transport, tmp_path / "server", CoordinatorSettings(resend=0.2, greeting=60.0, deadline=60.0)
    )
    for number in (1, 2, 3):
        wait_for(lambda: list(transport.places()) == ["north"])
        if number > 1:  # its next message finds it dead, and is sent again to the one that comes after it
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = started(homes["north"], transport.address, certificates)
        coordinator.round(number)
    coordinator.share()
    busy = started(homes["north"], transport.address, certificates)
    assert busy.wait(60) == 2
    assert busy.stderr is not None
    assert busy.stderr.read().endswith("another process serves it already; see ownview deploy status\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    transport.close()
    assert [one.round for one in read_log(coordinator.folder / "participants.jsonl")] == [1, 2, 3]
    place = Place(homes["north"])
    assert_equal(agreed, coordinator, {"north": place}, replayed(agreed, homes, coordinator.folder))
    assert advise(homes["north"], "north-0", 3).taken_part


class Held:
    """A place that holds its answer back once it has worked on a round, until the test releases it."""

    def __init__(self, home: Path, number: int) -> None:
        self.home, self.place, self.number = home, Place(home), number
        self.worked, self.go = threading.Event(), threading.Event()

    def answer(self, message: bytes) -> bytes:
        answer, asked = self.place.answer(message), Envelope.unpack(message)
        if (asked.kind, asked.round) == (Kind.WORK, self.number):
            self.worked.set()
            self.go.wait(PATIENCE)
        return answer


@pytest.mark.slow
def test_the_server_s_process_is_killed_in_mid_round_and_goes_on(tmp_path: Path) -> None:
    """Once while a place has worked and not answered yet, so that its work is lost; once right after a count."""
    agreed, rounds = agreement("fedrap", room=4), 4
    plan = Plan(port=free_port(), rounds=rounds)
    server = create_server_folder(tmp_path / "server", agreed, plan, CoordinatorSettings(resend=0.2, least=4))
    homes = write_homes(tmp_path, ("east", "west"), users=2)
    for name in homes:
        server.keys.enrol(name, write_place(server.certificates, name))
    places = {name: Held(home, 2) for name, home in homes.items()}
    places["west"].go.set()
    running = [Running(place, plan.address, server.certificates, name) for name, place in places.items()]
    with ExitStack() as processes:
        process = processes.enter_context(serving(server))
        wait_for(places["east"].worked.is_set)
        process.kill()
        process.wait()
        places["east"].go.set()
        process = processes.enter_context(serving(server))
        wait_for(lambda: len(read_log(server.rounds / "participants.jsonl")) >= 2)
        process.kill()
        process.wait()
        process = processes.enter_context(serving(server))
        assert process.wait(PATIENCE) == 0
    for one in running:
        one.end()
    log = read_log(server.rounds / "participants.jsonl")
    assert [one.round for one in log] == list(range(1, rounds + 1))
    assert all(len(one.clients) == 4 and not one.notes for one in log)
    coordinator = Coordinator(agreed, InProcess({}), server.rounds)
    apart = {name: one.place for name, one in places.items()}
    assert_equal(agreed, coordinator, apart, replayed(agreed, homes, server.rounds))
