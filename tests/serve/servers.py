"""A real server in a process of its own, at a port that the system chooses."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 120.0


@dataclass(eq=False)
class Server:
    """A running `ownview serve`. `lines`: what it has said so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    url: str = ""

    def read(self) -> None:
        """Collect lines until the server ends."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"{what}: {self.lines}")
            time.sleep(0.02)

    def said(self, pattern: str) -> list[str]:
        """Lines with a pattern."""
        return [line for line in self.lines if re.search(pattern, line)]

    def workers(self) -> list[int]:
        """Process ids of the workers, by its own word of Linux."""
        pid = self.process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return [int(one) for one in found if b"resource_tracker" not in Path(f"/proc/{one}/cmdline").read_bytes()]


HANDED_OVER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)
"""Starts Python with a socket as systemd hands it over."""


@contextlib.contextmanager
def serving(model: Path, *words: str, held: socket.socket | None = None) -> Iterator[Server]:
    """A server that is ready, at a socket that is held elsewhere where one is given."""
    line = ["-m", "ownview", "serve", str(model), "--port", "0", *words]
    first, handed = [sys.executable], [] if held is None else [held.fileno()]
    if held is not None:
        first += ["-c", HANDED_OVER, str(held.fileno())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([*first, *line], stderr=subprocess.PIPE, text=True, env=environment, pass_fds=handed)
    server = Server(process)
    reading = threading.Thread(target=server.read, daemon=True)
    reading.start()
    try:
        server.until(lambda: server.said("ready at"), "ready")
        found = re.search(r"http://\S+:\d+", server.said("ready at")[0])
        assert found is not None
        server.url = found[0]
        yield server
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
        reading.join(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()
