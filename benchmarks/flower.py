"""What Flower's deployment costs to carry the same messages: CPU-seconds and bytes a message.

    python -m benchmarks.flower                        # FedMF on goodbooks, three nodes of one user
    python -m benchmarks.flower --method pfedrec --rounds 6

A SuperLink, a SuperNode a device and `flwr run examples/flower` are processes of this machine, without TLS (HTTPS has
it in benchmarks.devices). Flower starts a process for every message, which loads PyTorch anew. CPU-seconds are those of
all processes that their parents waited for (so at least), from a run of all rounds less a run of one, so that starting
them does not count. A relay between nodes and the SuperLink counts bytes. `python -m benchmarks.devices` has the same
over HTTPS.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from examples.flower.prepare import prepare

from benchmarks.devices import LOOPBACK, Relay

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 900.0


def measure(method: str, devices: int, users: int, rounds: int) -> dict[str, Any]:
    """All rounds, less what one round takes."""
    one, every = (_run(method, devices, users, number) for number in (1, rounds))
    messages = devices * (rounds - 1)
    return {
        "method": method,
        "nodes": devices,
        "users a node": users,
        "messages of work": messages,
        "cpu-seconds a message, all processes": round((every["cpu"] - one["cpu"]) / messages, 3),
        "seconds a round": round((every["seconds"] - one["seconds"]) / (rounds - 1), 2),
        "bytes on the wire a message of work and its answer": round((every["wire"] - one["wire"]) / messages),
    }


def _run(method: str, devices: int, users: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder, home = Path(place), Path(place) / "flwr"
        prepare(folder / "homes", method, devices, users)
        link = _free_port()
        relay = Relay((LOOPBACK, link))
        host, port = relay.start()
        home.mkdir()
        home.joinpath("config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{LOOPBACK}:{link}"\ninsecure = true\n'
        )
        path = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
        environment = {
            **os.environ, "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        began, used = time.monotonic(), _cpu()
        log = (folder / "log").open("wb")
        started = [
            _start(environment, log, "flower-superlink", "--insecure", "--host", LOOPBACK, "--port", link,
                   "--disable-runtime-dependency-installation")
        ]  # fmt: skip
        _wait_for(link)
        for k in range(devices):
            where = f'home="{folder / "homes" / f"place{k}"}"'
            started.append(
                _start(environment, log, "flower-supernode", "--insecure", "--superlink", f"{host}:{port}",
                       "--port", _free_port(), "--node-config", where)
            )  # fmt: skip
        settings = f'folder="{folder / "homes"}" places={devices} rounds={rounds}'
        try:
            words = ["flwr", "run", str(ROOT / "examples" / "flower"), "--run-config", settings, "--stream"]
            subprocess.run(words, env=environment, stdout=log, stderr=log, timeout=_PATIENCE, check=True, cwd=folder)
            counted = folder / "homes" / "coordinator" / "participants.jsonl"
            if not counted.is_file() or len(counted.read_text().splitlines()) != rounds:
                raise RuntimeError((folder / "log").read_text(errors="replace")[-3000:])
        finally:
            seconds = time.monotonic() - began
            for process in reversed(started):
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(30)
        return {"cpu": _cpu() - used, "wire": float(relay.counted), "seconds": seconds}


def _start(environment: dict[str, str], log: Any, *words: object) -> subprocess.Popen[bytes]:
    path = shutil.which(str(words[0]), path=environment["PATH"])
    command = [str(path), *map(str, words[1:])]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def _wait_for(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedmf")
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--users", type=int, default=1, help="users of a node")
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    print(json.dumps(measure(asked.method, asked.devices, asked.users, asked.rounds), indent=2))


if __name__ == "__main__":
    main()
