"""Places and a coordinator on mutual TLS, each place in a thread of its own; loopback alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ownview.deploy import tls
from ownview.deploy.certificates import write_authority, write_place, write_server
from ownview.deploy.keys import KnownKeys
from ownview.deploy.transport import Answering

PATIENCE = 600.0
"""Seconds after which a test gives up waiting; nothing is decided by how long something takes."""


def enrolled(folder: Path, names: Iterable[str]) -> tuple[Path, KnownKeys]:
    """Certificates of a coordinator and of some places, and whose key is whose."""
    write_authority(folder)
    write_server(folder)
    keys = KnownKeys(folder / "keys.json")
    for name in names:
        keys.enrol(name, write_place(folder, name))
    return folder, keys


class Running:
    """A place at work in a thread."""

    def __init__(self, place: Answering, address: tuple[str, int], certificates: Path, name: str) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(
            target=self._run, args=(place, address, certificates, name), name=name, daemon=True
        )
        self.thread.start()

    def _run(self, place: Answering, address: tuple[str, int], certificates: Path, name: str) -> None:
        try:
            tls.attend(place, address, certificates, name, self.stop)
        except BaseException as error:  # a kill, too, ends nothing but this place
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def free_port() -> int:
    """One that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_for(condition: Callable[[], bool]) -> None:
    """Until a condition holds; a test that waits in vain fails."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
