"""HTTP/1.1 on a connection whose other end has shown a certificate: who it is, and how long it may take.

Uvicorn speaks HTTP and calls the application. It knows no limit on the time that the head of a request may take, and
tells the application nothing of certificates; both are here.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ownview.deploy.https.bounded_log import LogHandler, Say
from ownview.deploy.https.limits import Limits
from ownview.deploy.https.mailboxes import Mailboxes
from ownview.deploy.identities.certificates import fingerprint

CALLER = "caller"
"""Under this name a request's state (ASGI) has its connection."""
_LOGGER = "ownview.deploy.https"
_FAREWELL = 5.0
"""Seconds for requests to end when the server does."""


class Connections:
    """All open connections, at most one for every certificate: the newest.

    A place that starts again before its old connection has timed out must get in, and a holder of a certificate
    cannot take more than one connection with it.

    Args:
        config: of Uvicorn, with the application.
        limits: on seconds.
        mailboxes: open for as long as their places are connected.
    """

    def __init__(self, config: Config, limits: Limits, mailboxes: Mailboxes) -> None:
        self.config, self.limits, self.mailboxes = config, limits, mailboxes
        self.state = ServerState()
        self.newest: dict[str, Connection] = {}

    def __len__(self) -> int:
        return len(self.state.connections)

    def new(self) -> Connection:
        """Attends to a connection that was let in."""
        return Connection(self)

    def came(self, one: Connection) -> None:
        """A certificate was shown; an older connection with the same one ends."""
        earlier = self.newest.get(one.key)
        self.newest[one.key] = one
        if earlier is not None:
            if earlier.name:  # what waits for the place is handed over
                one.name = earlier.name
                self.mailboxes.open(one.name, one)
            earlier.abort()

    def went(self, one: Connection) -> None:
        """A connection has ended."""
        if self.newest.get(one.key) is one:
            del self.newest[one.key]
        if one.name:
            self.mailboxes.close(one.name, one)

    async def close(self) -> None:
        """Hang up on everybody, and wait until what they asked for has noticed."""
        for one in list(self.newest.values()):
            one.abort()
        tasks = list(self.state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL)
        for task in tasks:
            task.cancel()


class Connection(H11Protocol):
    """One connection.

    Args:
        all_connections: of this server.
    """

    def __init__(self, all_connections: Connections) -> None:
        super().__init__(all_connections.config, all_connections.state, {})
        self.all_connections = all_connections
        self.logger = logging.getLogger(_LOGGER)
        self.access_log = False
        self.key = self.name = ""
        self.polled = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """Address of the other end, for the log."""
        return "?" if self.client is None else self.client[0]

    def abort(self) -> None:
        """Hang up without a word."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as Uvicorn has it
        """The handshake has succeeded; see `asyncio`."""
        super().connection_made(transport)
        shown: ssl.SSLObject = transport.get_extra_info("ssl_object")
        self.key = fingerprint(shown.getpeercert(binary_form=True) or b"")
        self.app_state = {CALLER: self}
        self.all_connections.came(self)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio`."""
        self._expect_nothing()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self.all_connections.went(self)

    def data_received(self, data: bytes) -> None:
        """See `asyncio`."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # a head has begun and not ended; more bytes of it buy no more time
            if self._timer is None:
                self._expect_head()
        else:
            self._expect_nothing()

    def _expect_head(self) -> None:
        self._timer = self.loop.call_later(self.all_connections.limits.head, self.abort)

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@contextmanager
def logging_to(say: Say) -> Iterator[None]:
    """Have what HTTP libraries log become lines, and nothing else."""
    logger, handler = logging.getLogger(_LOGGER), LogHandler(say)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
