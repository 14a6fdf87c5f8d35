"""Two servers of shares as processes of their own, on ports that the system chose, and contributors in Node."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ownview.one_message.numbers import summand
from ownview.one_message.serving import new_key
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import SHARES, Share, Terms, agreed

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "src" / "ownview" / "one_message" / "client"
PATIENCE = 180.0


def free_port() -> int:
    """One that the system has free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(eq=False)
class Federation:
    """Two servers under one folder."""

    folder: Path
    items: list[str]
    method: str = "fedease"
    fewest: int = 10
    work: int = 0
    options: tuple[str, ...] = ("--per-minute", "1000000")
    """Of both servers."""
    urls: dict[Share, str] | None = None
    """As clients reach them; their own addresses where there is no proxy."""
    environment: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=lambda: {"a": [], "b": []})

    def __post_init__(self) -> None:
        keys = {share: new_key(self.folder / f"{share}.key") for share in SHARES}
        self.ports = {share: free_port() for share in SHARES}
        urls: dict[Share, str] = self.urls or {share: f"http://127.0.0.1:{self.ports[share]}" for share in SHARES}
        self.terms = agreed(self.method, self.items, urls, keys, fewest=self.fewest, work=self.work)
        (self.folder / "agreement.json").write_bytes(self.terms.content)
        (self.folder / "peer.key").write_bytes(secrets.token_bytes(32))

    def __enter__(self) -> Federation:
        for share in SHARES:
            self.start(share)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE)
            assert process.stderr is not None
            process.stderr.close()

    def start(self, share: Share) -> None:
        """A server, until it answers."""
        line = [
            sys.executable, "-m", "ownview", "sums", "serve", str(self.folder / "agreement.json"), "--share", share,
            "--folder", str(self.folder / share), "--key", str(self.folder / f"{share}.key"), "--peer-key",
            str(self.folder / "peer.key"), "--port", str(self.ports[share]), "--origin", "*", *self.options,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **self.environment}
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment)
        self.processes[share] = process
        threading.Thread(target=self._read, args=(share, process), daemon=True).start()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.status(share)
            except OSError:
                assert time.monotonic() < deadline, self.lines
                assert process.poll() is None, self.lines
                time.sleep(0.05)
            else:
                return

    def _read(self, share: str, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        try:
            self.lines[share].extend(process.stderr)
        except ValueError:  # closed meanwhile
            return

    def kill(self, share: Share) -> None:
        """SIGKILL."""
        self.processes[share].kill()
        self.processes[share].wait(PATIENCE)

    def status(self, share: Share) -> dict[str, Any]:
        """As a page would see it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[share]}/v1/status", timeout=10) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def until_counted(self, contributions: int) -> None:
        """Wait until so many count."""
        deadline = time.monotonic() + PATIENCE
        while self.status("b")["contributions"] != contributions:
            assert time.monotonic() < deadline, (self.status("b"), self.status("a"), self.lines)
            time.sleep(0.1)

    def contributors(self, people: list[dict[str, Any]], retries: int = 60) -> subprocess.Popen[str]:
        """In Node; each tries so often again while a server is away."""
        question = {
            "url": self.terms.urls["a"],
            "expected": self.terms.name.hex(),
            "people": people,
            "retries": retries,
        }
        line = ["node", str(HERE / "contribute.mjs"), str(PACKAGE)]
        process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.environment},
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(json.dumps(question))
        process.stdin.close()
        process.stdin = None
        return process

    def total(self) -> Any:
        """What was opened; both servers must have ended."""
        store = ShareStore(self.folder / "b", self.terms, "b")
        try:
            return store.total()
        finally:
            store.close()


def simulated(terms: Terms, people: list[dict[str, Any]]) -> tuple[Any, int]:
    """The sum of what counts in the end, and of how many contributions."""
    total, count = np.zeros(terms.size, dtype=np.int64), 0
    for one in people:
        if one["fate"] in ("plain", "twice", "update"):
            said = one["later"] if one["fate"] == "update" else one["history"]
            total += summand(terms, [terms.place[item] for item in said if item in terms.place])
            count += 1
    return total, count
