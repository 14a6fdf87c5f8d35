"""`ownview client run` as a process of its own, killed by the system and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ownview.deploy import tls
from ownview.deploy.advice import advise
from ownview.deploy.coordinator import Conduct, Coordinator
from ownview.deploy.participants import read_log
from ownview.deploy.place import Place
from tests.deploy.lines import enrolled, wait_for
from tests.deploy.world import agreement, assert_equal, replayed, write_homes

ONE = ("north",)


@pytest.mark.slow
def test_a_client_s_process_is_killed_in_mid_round_and_goes_on(tmp_path: Path) -> None:
    certificates, keys = enrolled(tmp_path / "certificates", ONE)
    homes, agreed = write_homes(tmp_path, ONE, users=3), agreement("fedrap")
    transport = tls.TlsTransport(("127.0.0.1", 0), certificates, keys)
    process = _started(homes["north"], transport.address, certificates)
    coordinator = Coordinator(agreed, transport, tmp_path / "server", Conduct(resend=0.2, greeting=60.0, deadline=60.0))
    for number in (1, 2, 3):
        wait_for(lambda: list(transport.places()) == ["north"])
        if number > 1:  # its next message finds it dead, and is sent again to the one that comes after it
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = _started(homes["north"], transport.address, certificates)
        coordinator.round(number)
    coordinator.share()
    busy = _started(homes["north"], transport.address, certificates)
    assert busy.wait(60) == 2
    assert busy.stderr is not None
    assert busy.stderr.read().endswith("another client is at work there; stop it first\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) != 0
    transport.close()
    assert [one.round for one in read_log(coordinator.folder / "participants.jsonl")] == [1, 2, 3]
    place = Place(homes["north"])
    assert_equal(agreed, coordinator, {"north": place}, replayed(agreed, homes, coordinator.folder))
    assert advise(homes["north"], "north-0", 3).taken_part


def _started(home: Path, address: tuple[str, int], certificates: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ownview", "client", "run", str(home), "--server", f"{address[0]}:{address[1]}"]
    command += ["--keys", str(certificates), "--name", "north"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
