"""A deployment's long life: rounds of messages over HTTPS on loopback; memory, files, threads and folders by round.

    python -m benchmarks.soak --rounds 100000 --every 2000 --log-bytes 2097152 --keep

FedMF, two places of one user, 24 items, one epoch a round. Server and places are threads of one process with folders,
certificates and checkpoints as in a deployment, so that whatever grows at either end shows. Every so many rounds a line
is measured, after a collection of garbage. Logs may be bounded by fewer bytes than a deployment's, so that they are cut
often. SIGTERM ends it after the round that goes on, and what there is by then is the record. In the end all that the
server wrote or said, and the places' accounts of what they sent, are searched for what users and items are called.
`--keep` writes results/soak.json and the table of docs/deploy.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import signal
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination import participants
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.https.polling import attend
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.certificates import (
    certificate_request,
    fingerprint,
    new_key,
    sign_request,
    write_authority,
    write_key,
    write_server,
)
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.places import home as homes
from ownview.deploy.places.home import SENT
from ownview.deploy.places.sent_messages import sent_messages
from ownview.deploy.settings import CoordinatorSettings

LOOPBACK = "127.0.0.1"
PLACES = ("east", "west")
USERS, ITEMS = 1, 24
ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "soak.json", ROOT / "docs" / "deploy.md"
BEGIN, END = "<!-- begin: benchmarks/soak.py -->\n", "<!-- end: benchmarks/soak.py -->"
_STEADY = CoordinatorSettings(resend=0.5, greeting=60.0, deadline=60.0)


def soak(
    rounds: int, every: int, folder: Path, log_bytes: int = 0, ended: threading.Event | None = None
) -> dict[str, Any]:
    """Rounds one after the other, and what there is every so many of them.

    Args:
        rounds: how many.
        every: of them a line is measured.
        folder: for everything.
        log_bytes: from which on logs are cut; 0 for a deployment's own bounds.
        ended: set where no further round shall begin.
    """
    bounds = participants.MOST_OF_LOG, homes.MOST_OF_LOG
    try:
        if log_bytes:
            participants.MOST_OF_LOG = homes.MOST_OF_LOG = log_bytes
        return _soaked(rounds, every, folder, ended or threading.Event()) | {"log_bytes": log_bytes}
    finally:
        participants.MOST_OF_LOG, homes.MOST_OF_LOG = bounds


def _soaked(rounds: int, every: int, folder: Path, ended: threading.Event) -> dict[str, Any]:
    torch.set_num_threads(1)
    certificates, keys = _certificates(folder / "certificates")
    settings = {"embedding_size": 4, "local_epochs": 1}
    agreement = Agreement("fedmf", USERS * len(PLACES), tuple(f"item-{k}" for k in range(ITEMS)), settings=settings)
    said, stop, lines, whole = list[str](), threading.Event(), list[dict[str, Any]](), 0
    with closing(HttpsTransport((LOOPBACK, 0), certificates, keys, say=said.append)) as transport:
        threads = []
        for name in PLACES:
            _write_ratings(folder / name, name)
            given = (Place(folder / name), transport.address, certificates, name, stop, said.append)
            threads.append(threading.Thread(target=attend, args=given, name=name, daemon=True))
            threads[-1].start()
        while len(transport.places()) < len(PLACES):
            time.sleep(0.01)
        coordinator = Coordinator(agreement, transport, folder / "server", _STEADY, said.append)
        for number in range(1, rounds + 1):
            if ended.is_set():
                rounds = number - 1
                break
            whole += len(coordinator.round(number).counted) == len(PLACES)
            if number % every == 0 or number in (1, rounds):
                lines.append(_measured(number, folder))
                print(json.dumps(lines[-1]), flush=True)
        coordinator.share()
        stop.set()
        for one in threads:
            one.join(60)
    return {
        "rounds": rounds,
        "messages": sum(_sent(folder / name) for name in PLACES),
        "rounds with all users": whole,
        "lines said": len(said),
        "log begins with round": read_log(folder / "server" / "participants.jsonl")[0].round,
        "account lines of": sum(len(sent_messages(folder / name).messages) for name in PLACES),
        "names found": _names_found(folder, said),
        "measured": lines,
    }


def table(found: dict[str, Any]) -> str:
    """What was measured, as Markdown: after the first rounds, in the middle, and in the end."""
    lines = found["measured"]
    shown = [lines[1], lines[len(lines) // 2], lines[-1]]
    whole = "all" if found["rounds with all users"] == found["rounds"] else f"{found['rounds with all users']:,}"
    rows = [
        f"| {one['round']:,} | {one['memory_mb']:.1f} MB | {one['open_files']} | {one['threads']} | {one['objects']:,} "
        f"| {one['server_kb']:,} kB, {one['place_kb']:,} kB | {one['cpu_s']:.0f} s |"
        for one in shown
    ]
    return "\n".join([
        f"{found['rounds']:,} rounds, {whole} of them with everybody; {found['messages']:,} messages from places; "
        f"{found['names found']} names of users or items in what the server wrote or said or in what places noted of "
        f"what they sent. {_of_logs(found)}",
        "",
        "| after round | memory | open files | threads | Python's objects | folders of server and place | CPU so far |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]) + "\n"  # fmt: skip


def _of_logs(found: dict[str, Any]) -> str:
    """What has become of the logs, in a sentence."""
    if not found["log_bytes"]:
        return "Logs were bounded as in a deployment."
    return (
        f"Logs were bounded at {found['log_bytes'] / 2**20:g} MiB, so that they were cut again and again: the server's "
        f"begins with round {found['log begins with round']:,}, the places' have {found['account lines of']:,} lines "
        "for all messages."
    )


def _measured(number: int, folder: Path) -> dict[str, Any]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "round": number,
        "memory_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
        "open_files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "server_kb": _size(folder / "server"),
        "place_kb": _size(folder / PLACES[0]),
        "cpu_s": round(time.process_time(), 1),
    }


def _size(folder: Path) -> int:
    return round(sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1024)


def _sent(home: Path) -> int:
    return sent_messages(home).number


def _names_found(folder: Path, said: list[str]) -> int:
    """Names of users and items in what the server wrote or said and in the places' accounts of what they sent.

    The server's agreement has the catalogue, which all know.
    """
    named = re.compile(rb"reader-|item-\d")
    written = [one for one in (folder / "server").rglob("*") if one.is_file() and one.name != "agreement"]
    files = [one.read_bytes() for one in (*written, *(folder / name / "state" / SENT for name in PLACES))]
    return sum(len(named.findall(one)) for one in (*files, "\n".join(said).encode()))


def _certificates(folder: Path) -> tuple[Path, KnownKeys]:
    write_authority(folder)
    write_server(folder)
    keys = KnownKeys(folder / "keys.json")
    for name in PLACES:
        key = new_key()
        write_key(folder / f"{name}.key", key)
        certificate = sign_request(folder, name, certificate_request(name, key))
        (folder / f"{name}.crt").write_bytes(certificate)
        keys.enrol(name, fingerprint(certificate))
    return folder, keys


def _write_ratings(home: Path, name: str) -> None:
    home.mkdir(parents=True)
    random, rows = np.random.default_rng(list(name.encode())), ["user,item,timestamp"]
    for user in range(USERS):
        items = random.choice(ITEMS, size=8, replace=False)
        rows += [f"reader-{name}-{user},item-{item},{1000 + k}" for k, item in enumerate(items)]
    (home / "ratings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    """Soak, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--every", type=int, default=200)
    parser.add_argument("--log-bytes", type=int, default=0, help="bound of logs; 0 for a deployment's")
    parser.add_argument("--keep", action="store_true", help="write the record and the page")
    given = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with tempfile.TemporaryDirectory() as folder:
        found = soak(given.rounds, given.every, Path(folder), given.log_bytes, ended)
    if given.keep:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(head + BEGIN + table(found) + END + rest.split(END)[1], encoding="utf-8")
    print(json.dumps({name: value for name, value in found.items() if name != "measured"}))


if __name__ == "__main__":
    main()
