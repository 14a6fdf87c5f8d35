"""Workers that share a listening socket take about as many connections each.

Left to itself the worker that wakes first takes all connections that wait, and other cores have nothing to do: of 32
that came at once one of two workers had all.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket

import uvicorn

from ownview.serve.counters import Counters

_POLITE = 0.002
"""Seconds that a worker with more connections than another leaves a new one to it."""
_FULL = 0.5
"""Seconds until a worker without a free file descriptor tries again."""


class FairServer(uvicorn.Server):
    """A server of which several share a socket.

    Args:
        config: of the server.
        listening: the socket.
        metrics: of this worker, and of the others; connections are counted there.
    """

    def __init__(self, config: uvicorn.Config, listening: socket.socket, metrics: Counters) -> None:
        super().__init__(config)
        self.listening, self.metrics = listening, metrics
        self._taking: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections from now on."""
        await super().startup([])
        self.listening.setblocking(False)
        self._taking = asyncio.create_task(self._take())

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: say how many connections there are."""
        self.metrics.connected(len(self.server_state.connections))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more."""
        if self._taking is not None:
            self._taking.cancel()
        self.listening.close()
        await super().shutdown([])

    async def _take(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._waiting(loop)
            self.metrics.connected(len(self.server_state.connections))
            if self.metrics.most_connected:
                await asyncio.sleep(_POLITE)
            if self.should_exit or _forsaken():
                return  # what waits is for the servers that come after
            try:
                connection, _ = self.listening.accept()
                connection.setblocking(False)
                await loop.connect_accepted_socket(self._protocol, connection)
            except (BlockingIOError, InterruptedError, ConnectionError):
                continue  # another worker has it, or it is gone
            except OSError:
                await asyncio.sleep(_FULL)

    async def _waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """Until a connection waits."""
        there = asyncio.Event()
        loop.add_reader(self.listening, there.set)
        try:
            await there.wait()
        finally:
            loop.remove_reader(self.listening)

    def _protocol(self) -> asyncio.Protocol:
        kind = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]


def _forsaken() -> bool:
    """Whether the process that started this one is gone."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()
