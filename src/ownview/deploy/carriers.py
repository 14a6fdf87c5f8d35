"""Both ends of HTTPS, by the folders of a deployment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from math import prod

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.deploy.agreement import Agreement
from ownview.deploy.folders import Membership, PlaceFolder, Plan, ServerFolder
from ownview.deploy.transport import Answering, Transport
from ownview.seam.client import Reporting

_PER_USER = 1 << 16
"""Bytes of an upload beside its numbers."""


def require_packages() -> None:
    """Refuse in one line where the packages of the extra are not installed."""
    missing = [name for name in ("cryptography", "h11", "uvicorn") if find_spec(name) is None]
    if missing:
        raise SettingError(
            f"ownview deploy: the package {missing[0]} is not installed; expected {how_to_install('deploy')}"
        )


@contextmanager
def server_end(server: ServerFolder, plan: Plan, say: Callable[[str], None]) -> Iterator[Transport]:
    """The coordinator's end."""
    require_packages()
    from ownview.deploy.https.server import HttpsTransport  # noqa: PLC0415 - packages of an extra
    from ownview.deploy.identities.invitations import accept  # noqa: PLC0415

    transport = HttpsTransport(
        (plan.listen, plan.port),
        server.certificates,
        server.keys,
        say,
        server.limits(),
        longest_answer(server.agreement()),
        partial(accept, server),
    )
    try:
        yield transport
    finally:
        transport.close()


def place_end(
    place: Answering, folder: PlaceFolder, about: Membership, stop: threading.Event, say: Callable[[str], None]
) -> None:
    """A place's end: answers until `stop`."""
    require_packages()
    from ownview.deploy.https.polling import attend  # noqa: PLC0415 - packages of an extra

    attend(place, about.address, folder.certificates, about.name, stop, say)


def longest_answer(agreement: Agreement) -> int:
    """Bytes that no honest answer exceeds: uploads of all users with every table written whole.

    A message about masks has at most a sealed share for each other user, which are far fewer bytes.
    """
    terms = agreement.terms()
    client, work = terms.client, terms.client.work
    shapes = [one.whole_shape(len(agreement.items)) for one in client.params.values()]
    shapes += [one.shape for one in work.sends.values()] if isinstance(work, Reporting) else []
    numbers = sum(map(prod, shapes)) + terms.codec.words
    return agreement.clients * (16 * numbers + 512 * agreement.clients + _PER_USER)
