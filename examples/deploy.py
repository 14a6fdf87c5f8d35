"""Three devices and a server on this machine: five rounds, one device killed and back, then it recommends by itself.

    python examples/deploy.py [FOLDER]

Every device is a process with its own users and their ratings; nothing but loopback is used. docs/deploy.md does the
same by hand, and then on three machines.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ownview as ov

PLACES, READERS, ROUNDS = ("east", "north", "west"), 20, 5
PATIENCE = 240.0


def ownview(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ownview", *map(str, words)]


def say(line: str) -> None:
    print(f"[{time.monotonic() - BEGUN:5.1f} s] {line}", flush=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def write_ratings(data: ov.Interactions, home: Path, readers: range) -> None:
    """What a device has: its own users' ratings, and nobody else's."""
    assert data.timestamp is not None
    lines = ["user,item,timestamp"]
    for reader in readers:
        rows = range(data.offsets[reader], data.offsets[reader + 1])
        lines += [f"{data.users[reader]},{data.items[data.item[row]]},{data.timestamp[row]}" for row in rows]
    (home / "ratings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def start(folder: Path, *words: str | Path) -> subprocess.Popen[bytes]:
    with (folder / "demo.log").open("ab") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "160"}
        return subprocess.Popen(ownview(*words), stdout=log, stderr=log, env=environment)


def status(folder: Path) -> dict[str, Any]:
    done = subprocess.run(ownview("deploy", "status", folder, "--json"), capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"waited {PATIENCE:g} s in vain: {what}; see demo.log in the folders")
        time.sleep(0.5)


def rounds_done(folder: Path) -> int:
    log = folder / "rounds" / "participants.jsonl"
    return len(log.read_text(encoding="utf-8").splitlines()) if log.is_file() else 0


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    words = ["--places", ",".join(PLACES), "--items", "goodbooks", "--rounds", str(ROUNDS)]
    everybody = str(READERS * len(PLACES))
    words += ["--users", everybody, "--least", everybody, "--port", str(free_port())]
    subprocess.run(ownview("deploy", "init", folder, "pfedrec", *words), check=True)
    data = ov.load("goodbooks")
    server = start(folder, "deploy", "server", folder)
    clients: dict[str, subprocess.Popen[bytes]] = {}
    homes = {name: folder / "places" / name for name in PLACES}
    try:
        for k, (name, home) in enumerate(homes.items()):
            invitation = folder / "invitations" / f"{name}.json"
            subprocess.run(ownview("deploy", "join", invitation, home, "--wait", "60"), check=True)
            write_ratings(data, home, range(k * READERS, (k + 1) * READERS))
            clients[name] = start(home, "deploy", "client", home)
        say(f"{', '.join(PLACES)} have {READERS} readers each")
        wait_until("two rounds", lambda: rounds_done(folder) >= 2)
        say(f"{rounds_done(folder)} rounds are done; now west is killed")
        clients["west"].kill()
        clients["west"].wait()
        clients["west"] = start(homes["west"], "deploy", "client", homes["west"])
        say("west is started again")
        wait_until("the last round", lambda: server.poll() is not None)
        say(f"the server has ended with code {server.returncode}")
    finally:
        for process in (server, *clients.values()):
            process.terminate()
        for process in (server, *clients.values()):
            process.wait()
    print((folder / "demo.log").read_text(encoding="utf-8").rstrip())
    subprocess.run(ownview("deploy", "status", folder), check=True)
    say("every process has ended; west recommends by itself, from its own files")
    reader = str(data.users[2 * READERS])
    subprocess.run(ownview("client", "recommend", homes["west"], "--user", reader, "-k", "5"), check=True)
    subprocess.run(ownview("deploy", "status", homes["west"]), check=True)
    assert len(status(folder)["done"]) == ROUNDS
    say("done")


BEGUN = time.monotonic()
if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/deploy-demo"))
