"""Masked FedEASE on this machine: a server and three devices that come, go and come back, then one recommends offline.

    python examples/deploy.py [FOLDER]

Every device is a process with its own users and their ratings; nothing but loopback is used. The server sees sums of
pairs of books over all users of a round, and no single user's (masks); a user sends once, so that one who is late adds
to the same sums. Two devices begin, the third comes later; one is killed and started again. In the end the server's
folder gives a page for people. docs/deploy.md does the same by hand, and then on three machines.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ownview as ov

PLACES, READERS, ROUNDS, BOOKS = ("east", "north", "west"), 20, 4, 300
CLIP = 64.0
"""Length to which a user's pairs are cut: that of 263 books and more (ownview start --private recommends one)."""

COHORT = 30
"""Users of a round, drawn from those that are there: two places are enough for one."""

PATIENCE = 240.0


def ownview(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ownview", *map(str, words)]


def say(line: str) -> None:
    print(f"[{time.monotonic() - BEGUN:5.1f} s] {line}", flush=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def write_books(data: ov.Interactions, file: Path) -> None:
    """What is recommended, as all places know it: the books that most readers have."""
    counts = np.bincount(data.item, minlength=data.num_items)
    rows = [(data.items[book], data.title(int(book))) for book in np.argsort(-counts, kind="stable")[:BOOKS]]
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("item", "title"), *rows])


def write_ratings(data: ov.Interactions, home: Path, readers: range, books: Path) -> None:
    """What a device has: its own users' ratings alone."""
    assert data.timestamp is not None
    with books.open(encoding="utf-8", newline="") as listed:
        known = {row["item"] for row in csv.DictReader(listed)}
    lines = ["user,item,timestamp"]
    for reader in readers:
        rows = range(data.offsets[reader], data.offsets[reader + 1])
        mine = [(str(data.items[data.item[row]]), data.timestamp[row]) for row in rows]
        lines += [f"{data.users[reader]},{item},{time}" for item, time in mine if item in known]
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
    folder.parent.mkdir(parents=True, exist_ok=True)
    data, books = ov.load("goodbooks"), folder.with_name(f"{folder.name}-books.csv")
    write_books(data, books)
    words = ["--places", ",".join(PLACES), "--items", str(books), "--rounds", str(ROUNDS)]
    words += ["--users", str(READERS * len(PLACES)), "--least", str(2 * READERS), "--quorum", "0.6"]
    words += ["--privacy", f"masked:clip={CLIP:g}", "--set", f"clients={COHORT}", "--port", str(free_port())]
    subprocess.run(ownview("deploy", "init", folder, "fedease", *words), check=True)
    settings = folder / "deployment.toml"
    # A round ends without a device that is gone: after a quarter of a minute here, after ten by default.
    settings.write_text(re.sub(r"deadline = [\d.]+", "deadline = 15.0", settings.read_text(encoding="utf-8")))
    server = start(folder, "deploy", "server", folder)
    clients: dict[str, subprocess.Popen[bytes]] = {}
    homes = {name: folder / "places" / name for name in PLACES}
    try:
        for k, (name, home) in enumerate(homes.items()):
            invitation = folder / "invitations" / f"{name}.json"
            subprocess.run(ownview("deploy", "join", invitation, home, "--wait", "60"), check=True)
            write_ratings(data, home, range(k * READERS, (k + 1) * READERS), books)
        for name in PLACES[:2]:
            clients[name] = start(homes[name], "deploy", "client", homes[name])
        say(f"{' and '.join(PLACES[:2])} are there, with {READERS} readers each")
        wait_until("the first round", lambda: rounds_done(folder) >= 1)
        say(f"{rounds_done(folder)} rounds are done without west; now it comes, and north is killed")
        clients["west"] = start(homes["west"], "deploy", "client", homes["west"])
        clients["north"].kill()
        clients["north"].wait()
        time.sleep(3)
        say("a masked sum waits for as many readers as its quorum asks for: north is started again")
        clients["north"] = start(homes["north"], "deploy", "client", homes["north"])
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
    say("the server makes a page of what it has: sums, and no reader's books")
    subprocess.run(ownview("page", folder, "-o", folder / "page.html"), check=True)
    say("done")


BEGUN = time.monotonic()
if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/deploy-demo"))
