"""A link of Flower's in a process of its own and places in threads; loopback alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ownview.deploy.coordinator import Conduct
from ownview.deploy.flower.access import Access
from ownview.deploy.flower.grid import FlowerTransport
from ownview.deploy.flower.node import Pace, attend
from ownview.deploy.flower.supervised import LinkProcess
from ownview.deploy.keys import KnownKeys
from ownview.deploy.transport import Answering
from tests.deploy.lines import PATIENCE

PATIENT = Conduct(resend=2.0, greeting=PATIENCE, deadline=PATIENCE)
LIVELY = Pace(0.2, 0.5, PATIENCE)


def transport_to(
    link: LinkProcess, certificates: Path, keys: KnownKeys, say: Callable[[str], None] = lambda line: None
) -> FlowerTransport:
    """The coordinator's end at a link."""
    access = Access(f"127.0.0.1:{link.port}", certificates / "ca.crt", link.secret)
    return FlowerTransport(access, certificates, keys, say)


class Running:
    """A place at work in a thread."""

    def __init__(self, place: Answering, port: int, certificates: Path, name: str, pace: Pace = LIVELY) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(
            target=self._run, args=(place, ("127.0.0.1", port), certificates, name, pace), daemon=True
        )
        self.thread.start()

    def _run(self, place: Answering, address: tuple[str, int], certificates: Path, name: str, pace: Pace) -> None:
        try:
            attend(place, address, certificates, name, self.stop, pace=pace)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
