"""`ownview deploy` through Flower, in processes of their own: a device that is killed comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'ownview[deploy]'")

from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import Plan
from ownview.deploy.founding import add_places, found
from ownview.deploy.participants import read_log
from ownview.deploy.place import Place
from ownview.deploy.transport import InProcess
from tests.deploy.flower.lines import PATIENT, Running, free_port
from tests.deploy.world import agreement, assert_equal, replayed, write_ratings

ROUNDS = 3
PATIENCE = 600.0
"""Seconds until processes that should have started, or ended, count as hanging."""


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Until a condition holds, as long as a process lives."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


@contextmanager
def started(*words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the command line; killed where the test leaves it running."""
    command = [sys.executable, "-m", "ownview", "deploy", *map(str, words)]
    with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_device_killed_in_its_work_comes_back_and_all_equals_a_simulation(tmp_path: Path) -> None:
    agreed = agreement("pfedrec", room=8)
    plan = Plan(port=free_port(), rounds=ROUNDS)
    server = found(tmp_path / "server", agreed, plan, replace(PATIENT, least=8))
    homes = {one.path.name: one.path for one in add_places(server, ["east", "west"])}
    for name, home in homes.items():
        write_ratings(home, name, 4)
    log = server.rounds / "participants.jsonl"
    with ExitStack() as everybody:
        serving = everybody.enter_context(started("server", server.path))
        east = Running(Place(homes["east"]), plan.port, homes["east"] / "certificates", "east")
        west = everybody.enter_context(started("client", homes["west"]))
        wait_for(lambda: len(read_log(log)) >= 1, serving)
        west.send_signal(signal.SIGKILL)
        west.wait()
        west = everybody.enter_context(started("client", homes["west"]))
        assert serving.wait(PATIENCE) == 0
        west.terminate()
        assert west.wait(PATIENCE) == 0
        east.end()
    assert [one.round for one in read_log(log)] == list(range(1, ROUNDS + 1))
    assert all(len(one.clients) == 8 for one in read_log(log))
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess({}), server.rounds, PATIENT)
    assert_equal(agreed, coordinator, places, replayed(agreed, homes, server.rounds))
