"""Fifty readers, two servers, one message each: neither server can read one, and the sum is exact.

    python examples/browser_demo.py [FOLDER]

Readers are the JavaScript client in Node, on goodbooks' 364 most popular books. Some leave in mid-send, some take their
contribution back. Nothing but loopback is used. What is left is a page that says how many contributed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ownview as ov
from ownview.one_message.numbers import summand
from ownview.one_message.terms import Terms
from ownview.parts.pairs.positive_definite import ease_weights

READERS, ITEMS, PATIENCE = 50, 364, 120.0


def ownview(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ownview", *map(str, words)]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def histories() -> tuple[list[str], list[str], list[list[str]]]:
    """Ids and titles of popular books, and what the first readers of each had, oldest first."""
    data = ov.load("goodbooks")
    kept = np.argsort(-np.bincount(data.item), kind="stable")[:ITEMS]
    ids = [str(data.items[item]) for item in kept]
    mine = {*kept.tolist()}
    rows = [[item for item in data.item[data.of(user)].tolist() if item in mine] for user in range(READERS)]
    return ids, [data.title(int(item)) for item in kept], [[str(data.items[item]) for item in row] for row in rows]


def read_status(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/v1/status", timeout=10) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def wait(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not happen in {PATIENCE:g} s")
        time.sleep(0.1)


def answers(url: str) -> bool:
    try:
        return bool(read_status(url))
    except OSError:
        return False


def send(terms: Terms, readers: list[dict[str, Any]]) -> None:
    question = {"url": terms.urls["a"], "expected": terms.name.hex(), "readers": readers}
    script = Path(__file__).resolve().parent / "browser_readers.mjs"
    subprocess.run(["node", str(script)], input=json.dumps(question), text=True, check=True, timeout=600)


def page(path: Path, status: dict[str, Any], titles: list[str], sums: Any, exact: bool) -> None:
    """How many contributed, and what the sum says: which book goes with which."""
    gram = np.zeros((ITEMS, ITEMS))
    gram[np.triu_indices(ITEMS)] = sums / 4096
    gram = gram + np.triu(gram, 1).T
    weights = ease_weights(torch.from_numpy(gram).float(), 20.0).numpy()
    rows = "".join(
        f"<li>{escape(titles[item])}: {escape(titles[int(weights[item].argmax())])}</li>"
        for item in np.argsort(-gram.diagonal())[:10].tolist()
    )
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>One message</title>'
        f"<h1>{status['contributions']} readers contributed</h1><p>{status['batches']} batch was opened, of at least "
        f"{status['fewest']}. The sum is {'exactly' if exact else 'NOT'} that of their histories; neither server has "
        "read one of them, and both together could have.</p>"
        f"<h2>Who liked this may like that</h2><ul>{rows}</ul></html>"
    )
    path.write_text(text, encoding="utf-8")


def main() -> None:
    if shutil.which("node") is None:
        raise SystemExit("the readers need node, which is not here")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/browser-demo")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ids, titles, said = histories()
    (folder / "items.csv").write_text("item\n" + "".join(f"{one}\n" for one in ids), encoding="utf-8")
    (folder / "peer.key").write_bytes(secrets.token_bytes(32))
    does = ["takes back"] * 3 + ["leaves"] * 5 + ["sends"] * (READERS - 8)
    readers = [{"history": history, "does": what} for history, what in zip(said, does, strict=True)]
    servers = {share: f"http://127.0.0.1:{free_port()}" for share in ("a", "b")}
    words: list[str] = []
    for share, url in servers.items():
        made = subprocess.run(
            ownview("sums", "key", folder / f"{share}.key"), capture_output=True, text=True, check=True
        )
        words += [f"--{share}", url, made.stdout.strip()]
    agreement = folder / "agreement.json"
    least = ["--fewest", str(READERS - 8), "-o", str(agreement)]
    subprocess.run(ownview("sums", "agree", "--items", folder / "items.csv", *words, *least), check=True)
    running = []
    for share, url in servers.items():
        place = ("--folder", folder / share, "--key", folder / f"{share}.key", "--peer-key", folder / "peer.key")
        options = ("--share", share, *place, "--port", url.rpartition(":")[2], "--per-minute", "1000")
        running.append(subprocess.Popen(ownview("sums", "serve", agreement, *options), env={**os.environ}))
    try:
        for url in servers.values():
            wait(lambda url=url: answers(url), f"an answer of {url}")
        terms = Terms.read(agreement.read_bytes())
        send(terms, readers[:-4])  # those who take back do not count in the end
        send(terms, readers[-4:])  # the batch is full now
        wait(lambda: read_status(servers["b"])["contributions"], "the opening of the batch")
        status = read_status(servers["b"])
    finally:
        for process in running:
            process.terminate()
            process.wait(60)
    total = ownview("sums", "total", agreement, "--folder", folder / "b", "-o", folder / "sums.i64")
    subprocess.run(total, check=True)
    sums = np.fromfile(folder / "sums.i64", dtype="<i8")
    true = sum(summand(terms, [terms.place[item] for item in one["history"]]).astype(np.int64)
               for one in readers if one["does"] == "sends")  # fmt: skip
    exact = bool(np.array_equal(sums, true))
    page(folder / "page.html", status, titles, sums, exact)
    found = "exact" if exact else "NOT exact"
    print(f"{status['contributions']} readers contributed; the sum is {found}: {folder}/page.html")
    if not exact:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
