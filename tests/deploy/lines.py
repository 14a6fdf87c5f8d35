"""Places and a coordinator over HTTPS, each in a thread or a process of its own; loopback alone."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ownview.deploy.folders import Membership, PlaceFolder, ServerFolder
from ownview.deploy.https.polling import attend
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


def write_place(folder: Path, name: str) -> str:
    """NAME.key and NAME.crt beside the authority, as a place and its server make them; returns the fingerprint."""
    key = new_key()
    write_key(folder / f"{name}.key", key)
    certificate = sign_request(folder, name, certificate_request(name, key))
    (folder / f"{name}.crt").write_bytes(certificate)
    return fingerprint(certificate)


class Running:
    """A place at work in a thread."""

    def __init__(
        self,
        place: Answering,
        address: tuple[str, int],
        certificates: Path,
        name: str,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.say = say
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(
            target=self._run, args=(place, address, certificates, name), name=name, daemon=True
        )
        self.thread.start()

    def _run(self, place: Answering, address: tuple[str, int], certificates: Path, name: str) -> None:
        try:
            attend(place, address, certificates, name, self.stop, self.say)
        except BaseException as error:  # a kill, too, ends nothing but this place
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def free_port() -> int:
    """One that no process listens at now."""
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


@contextmanager
def serving(server: ServerFolder) -> Iterator[subprocess.Popen[str]]:
    """A server's process; killed where the test leaves it running."""
    command = [sys.executable, "-m", "ownview", "deploy", "server", str(server.path)]
    surroundings = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=surroundings, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def started(
    home: Path, address: tuple[str, int], certificates: Path, name: str = "north", options: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """A place's process on its folder."""
    folder = PlaceFolder(home)
    if not folder.exists:
        shutil.copytree(certificates, folder.certificates)
        folder.keep(Membership(host=address[0], port=address[1], name=name))
    command = [sys.executable, "-m", "ownview", "deploy", "client", str(home), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
