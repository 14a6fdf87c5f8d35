"""A server that runs rounds while strangers and a hostile place do what they can: the rounds are the same, bit for bit.

Before: see `test_port.py`.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordination.register import Register
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import Plan, ServerFolder, create_server_folder
from ownview.deploy.https.limits import Limits
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.in_process import InProcess
from tests.deploy.lines import PATIENCE, Running, free_port, wait_for, write_place
from tests.deploy.test_processes import Held
from tests.deploy.world import QUICK, agreement, write_homes
from tests.security.storm import garbage, half_open, still_open, without_certificate, wrong_request

NAMES, EVIL, ROUNDS = ("east", "north"), "zed", 3
MEMORY = 96 << 20
"""Bytes that a server may grow by at most; in the slow tier bodies of 256 KB come to 500 MB in all."""
FILES = 400
"""That the server may have open: fewer than half-open connections come."""
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@dataclass(frozen=True)
class Server:
    """A server's process.

    Args:
        process: of it.
        log: what it says.
    """

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def resident(self) -> int:
        """Bytes of memory that it has now."""
        return self._memory("VmRSS")

    @property
    def most_resident(self) -> int:
        """Bytes of memory that it had at most."""
        return self._memory("VmHWM")

    def _memory(self, what: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(what)).split()[1]) << 10

    @property
    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def allow_files(self, count: int) -> None:
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (count, hard))


@contextmanager
def serving(folder: ServerFolder) -> Iterator[Server]:
    log = folder.path.parent / "server.log"
    command = [sys.executable, "-m", "ownview", "deploy", "server", str(folder.path)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "300"}
        )
    try:
        yield Server(process, log)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@needs_proc
@pytest.mark.parametrize(("connections", "messages"), [(500, 200), pytest.param(2000, 20_000, marks=pytest.mark.slow)])
def test_rounds_in_a_storm_equal_undisturbed_ones(
    connections: int, messages: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    agreed, chance = agreement(room=4), random.Random(connections)
    plan = Plan(port=free_port(), rounds=ROUNDS)
    folder = create_server_folder(tmp_path / "server", agreed, plan, CoordinatorSettings(resend=0.2, least=4))
    for name in (*NAMES, EVIL):
        folder.keys.enrol(name, write_place(folder.certificates, name))
    folder.rounds.mkdir()
    for name in NAMES:  # identities do not depend on who comes first
        Register(folder.rounds / "register.json", agreed.clients).enrol(name, 2)
    homes = write_homes(tmp_path / "homes", NAMES, users=2)
    east, north = Held(homes["east"], 2), Place(homes["north"])
    with serving(folder) as server:
        held = Running(east, plan.address, folder.certificates, "east")
        wait_for(lambda: server.process.poll() is None and server.log.stat().st_size > 0)
        server.allow_files(FILES)
        with half_open(plan.address, connections) as silent:
            running = Running(north, plan.address, folder.certificates, "north")  # comes in the middle of it
            wait_for(lambda: east.worked.is_set() or not running.thread.is_alive())  # round 2 waits for it
            assert (held.error, running.error) == (None, None)
            before = server.resident
            _storm(plan.address, folder.certificates, messages, chance)
            assert server.process.poll() is None
            assert still_open(silent) <= Limits().per_address
            _run_out_of_files(server, plan.address)
            grown = server.most_resident - before
        record_property("megabytes more", grown / 1e6)
        assert grown < MEMORY
        east.go.set()
        assert server.process.wait(PATIENCE) == 0
    for one in (held, running):
        one.end()
    log = [line for line in server.log.read_text().splitlines() if "refused" in line or "accepted" in line]
    assert 0 < len(log) < 30 * 60, "thirty lines a minute"
    assert "127.0.0.1: refused: " in "\n".join(log)
    assert [one.clients for one in read_log(folder.rounds / "participants.jsonl")] == [[0, 1, 2, 3]] * ROUNDS
    _assert_undisturbed(folder, tmp_path / "quiet")


def _storm(address: tuple[str, int], certificates: Path, messages: int, chance: random.Random) -> None:
    """Mostly garbage, which is cheap to send; every tenth TLS without a certificate; some of an enrolled place."""
    for number in range(messages):
        if number % 20 == 0:
            assert not wrong_request(address, certificates, EVIL, chance)
        elif number % 10 == 5:
            assert not without_certificate(address, 1 << 18)
        else:
            garbage(address, chance)


def _run_out_of_files(server: Server, address: tuple[str, int]) -> None:
    """No file is free for a while: connections fail, the server goes on, and takes them again after that."""
    server.allow_files(8)
    assert server.open_files > 8
    with half_open(address, 20):
        wait_for(lambda: "could not be accepted" in server.log.read_text() or server.process.poll() is not None)
        assert server.process.poll() is None
    server.allow_files(FILES)


def _assert_undisturbed(folder: ServerFolder, quiet: Path) -> None:
    """The server's values after all rounds are those of rounds that nobody disturbed."""
    homes = write_homes(quiet, NAMES, users=2)
    undisturbed = Coordinator(
        folder.agreement(), InProcess({name: Place(home) for name, home in homes.items()}), quiet / "server", QUICK
    )
    undisturbed.run(ROUNDS)
    stormy = Coordinator(folder.agreement(), InProcess({}), folder.rounds)
    assert stormy.done == ROUNDS
    expected = undisturbed.server.pack()
    assert expected
    for name, value in stormy.server.pack().items():
        assert torch.equal(value, expected[name]), name
