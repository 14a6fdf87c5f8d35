"""The door: it accepts connections for ever, and lets those in that show a certificate in time.

A connection costs its sender nothing, so what it may cost the server is bounded before anything is known of it: how
many wait (in all, and from one address), for how long, and how many handshakes begin in a second; those beyond wait in
the system's queue, which costs no processor. Where there are too many, the one that has waited longest goes: an honest
handshake takes milliseconds, a silent connection takes for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from ownview.deploy.https.contexts import notice_loss, tls_failure
from ownview.deploy.https.limits import Limits
from ownview.deploy.https.pace import Pace

_PAUSE = 0.05
"""Seconds until the next try where the system could not accept a connection: no file is free, say."""
_FAREWELL = 2.0
"""Seconds that the other end of a connection that is closed may take to close it, too."""


class _Stranger:
    """A connection that has not shown a certificate yet."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection, self.address = connection, address
        self.task: asyncio.Task[None] | None = None
        self.begun = False


class Door:
    """Accepts connections.

    Args:
        listening: socket that listens.
        context: TLS, which asks for a certificate.
        let_in: makes what attends to a connection that has shown one.
        inside: how many connections have been let in and are open.
        limits: on connections and seconds.
        say: takes lines about who was refused.
    """

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext,
        let_in: Callable[[], asyncio.Protocol],
        inside: Callable[[], int],
        limits: Limits,
        say: Callable[[str], None],
    ) -> None:
        self.listening, self.context, self.let_in, self.inside = listening, context, let_in, inside
        self.limits, self.say = limits, say
        self.room = limits.room()
        self.strangers: dict[_Stranger, None] = {}  # the one that has waited longest first
        self.by_address: dict[str, dict[_Stranger, None]] = {}

    async def serve(self) -> None:
        """Accept until cancelled; no error of the system and nothing that comes in ends it."""
        self.listening.setblocking(False)
        loop, pace = asyncio.get_running_loop(), Pace(self.limits.handshakes)
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(self.listening)
                    self._admit(connection, str(address[0]))
                    await asyncio.sleep(pace.wait())  # a flood may have the next one ready for ever
                except Exception as error:
                    self.say(f"a connection could not be accepted ({error}); the server goes on")
                    self._drop_oldest(self.strangers)
                    await asyncio.sleep(_PAUSE)
        finally:
            for one in list(self.strangers):
                self._drop(one)

    def _admit(self, connection: socket.socket, address: str) -> None:
        same = self.by_address.get(address, {})
        if len(same) >= min(self.limits.per_address, max(1, self.room // 4)):
            self._drop_oldest(same)
        elif len(self.strangers) >= min(self.limits.strangers, max(1, self.room // 2)):
            self._drop_oldest(max(self.by_address.values(), key=len))
        if self.inside() + len(self.strangers) >= self.room and not self._drop_oldest(self.strangers):
            self.say(f"{address}: refused: {self.room} connections are open, which is the limit")
            connection.close()
            return
        one = _Stranger(connection, address)
        self.strangers[one] = None
        self.by_address.setdefault(address, {})[one] = None
        one.task = asyncio.get_running_loop().create_task(self._shake_hands(one))
        one.task.add_done_callback(lambda _: self._forget(one))

    async def _shake_hands(self, one: _Stranger) -> None:
        one.begun = True
        try:
            notice_loss(one.connection)
            await asyncio.get_running_loop().connect_accepted_socket(
                self.let_in,
                one.connection,
                ssl=self.context,
                ssl_handshake_timeout=self.limits.handshake,
                ssl_shutdown_timeout=_FAREWELL,
            )
        except OSError as error:  # of TLS as well
            self.say(f"{one.address}: refused: {tls_failure(error)}")
        except asyncio.CancelledError:
            self.say(f"{one.address}: refused: too many connections wait, and this one waited longest")
            raise

    def _drop_oldest(self, among: dict[_Stranger, None]) -> bool:
        """Hang up on the one that has waited longest; False where there is none."""
        oldest = next(iter(among), None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, one: _Stranger) -> None:
        self._forget(one)
        if one.task is not None:
            one.task.cancel()
        if not one.begun:  # else asyncio has the socket, and closes it
            one.connection.close()

    def _forget(self, one: _Stranger) -> None:
        self.strangers.pop(one, None)
        same = self.by_address.get(one.address, {})
        same.pop(one, None)
        if not same:
            with contextlib.suppress(KeyError):
                del self.by_address[one.address]
