"""Both ends of whatever carries messages, by the name of the transport."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ownview.deploy import tls
from ownview.deploy.flower.surroundings import require_flower
from ownview.deploy.folders import Membership, PlaceFolder, Plan, ServerFolder
from ownview.deploy.transport import Answering, Transport


def require_carrier(transport: str) -> None:
    """Refuse in one line a transport whose package is not installed."""
    if transport == "flower":
        require_flower()


@contextmanager
def server_end(server: ServerFolder, plan: Plan, say: Callable[[str], None]) -> Iterator[Transport]:
    """The coordinator's end, with all processes that it needs."""
    require_carrier(plan.transport)
    if plan.transport == "tls":
        transport = tls.TlsTransport((plan.listen, plan.port), server.certificates, server.keys, say)
        try:
            yield transport
        finally:
            transport.close()
        return
    from ownview.deploy.flower.access import Access  # noqa: PLC0415 - Flower may not be installed
    from ownview.deploy.flower.grid import FlowerTransport  # noqa: PLC0415
    from ownview.deploy.flower.supervised import LinkProcess  # noqa: PLC0415

    with LinkProcess(server.certificates, plan.listen, plan.port, say) as link:
        access = Access(f"{plan.reached_here}:{plan.port}", server.certificates / "ca.crt", link.secret)
        carried = FlowerTransport(access, server.certificates, server.keys, say)
        try:
            yield carried
        finally:
            carried.close()


def place_end(
    place: Answering, folder: PlaceFolder, about: Membership, stop: threading.Event, say: Callable[[str], None]
) -> None:
    """A place's end: answers until `stop`."""
    require_carrier(about.transport)
    if about.transport == "tls":
        tls.attend(place, about.address, folder.certificates, about.name, stop, say)
        return
    from ownview.deploy.flower.node import attend  # noqa: PLC0415 - Flower may not be installed

    attend(place, about.address, folder.certificates, about.name, stop, say)
