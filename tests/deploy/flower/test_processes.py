"""`ownview deploy` through Flower, in processes of their own: whoever is killed comes back, and no round is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'ownview[deploy]'")

from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import Plan, ServerFolder
from ownview.deploy.founding import add_places, found
from ownview.deploy.participants import read_log
from ownview.deploy.place import Place
from ownview.deploy.transport import InProcess
from tests.apart import Apart
from tests.deploy.flower.lines import PATIENT, Running
from tests.deploy.lines import free_port
from tests.deploy.world import agreement, assert_equal, replayed, write_ratings

ROUNDS = 3
PATIENCE = 600.0
"""Seconds until processes that should have started, or ended, count as hanging."""


def wait_for(rounds: int, server: ServerFolder, process: Apart) -> None:
    """Until so many rounds were counted, as long as a process lives."""
    until = time.monotonic() + PATIENCE
    while len(read_log(server.rounds / "participants.jsonl")) < rounds:
        assert process.poll() is None
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


@contextmanager
def started(*words: str | Path) -> Iterator[Apart]:
    """A process of the command line; killed where the test leaves it running."""
    process = Apart("deploy", *words)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def books(tmp_path: Path) -> tuple[Agreement, ServerFolder, dict[str, Path]]:
    """A deployment of two places of four users, and their homes."""
    agreed = agreement("pfedrec", room=8)
    plan = Plan(port=free_port(), rounds=ROUNDS)
    server = found(tmp_path / "server", agreed, plan, replace(PATIENT, least=8))
    homes = {one.path.name: one.path for one in add_places(server, ["east", "west"])}
    for name, home in homes.items():
        write_ratings(home, name, 4)
    return agreed, server, homes


def in_a_thread(server: ServerFolder, name: str, home: Path) -> Running:
    return Running(Place(home), server.plan()[0].port, home / "certificates", name)


def assert_all_rounds_equal_a_simulation(agreed: Agreement, server: ServerFolder, homes: dict[str, Path]) -> None:
    log = read_log(server.rounds / "participants.jsonl")
    assert [one.round for one in log] == list(range(1, ROUNDS + 1))
    assert all(len(one.clients) == 8 for one in log)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess({}), server.rounds, PATIENT)
    assert_equal(agreed, coordinator, places, replayed(agreed, homes, server.rounds))


def test_a_device_that_is_killed_comes_back(books: tuple[Agreement, ServerFolder, dict[str, Path]]) -> None:
    agreed, server, homes = books
    with ExitStack() as everybody:
        serving = everybody.enter_context(started("server", server.path))
        east = in_a_thread(server, "east", homes["east"])
        west = everybody.enter_context(started("client", homes["west"]))
        wait_for(1, server, serving)
        west.send_signal(signal.SIGKILL)
        west.wait()
        west = everybody.enter_context(started("client", homes["west"]))
        assert serving.wait(PATIENCE) == 0
        west.terminate()
        assert west.wait(PATIENCE) == 0
        east.end()
    assert_all_rounds_equal_a_simulation(agreed, server, homes)


@pytest.mark.slow
def test_a_server_that_is_killed_goes_on_where_it_was_and_its_link_ends_with_it(
    books: tuple[Agreement, ServerFolder, dict[str, Path]],
) -> None:
    agreed, server, homes = books
    running = [in_a_thread(server, name, home) for name, home in homes.items()]
    for rounds in (1, 2):
        with started("server", server.path) as serving:
            wait_for(rounds, server, serving)
            serving.send_signal(signal.SIGKILL)
            serving.wait()
    with started("server", server.path) as serving:
        assert serving.wait(PATIENCE) == 0
    for one in running:
        one.end()
        assert one.error is None
    assert_all_rounds_equal_a_simulation(agreed, server, homes)
