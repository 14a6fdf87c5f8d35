"""Workers that share a socket share the connections that come to it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import uvicorn

from ownview.base.http.bounded_head import BoundedHead
from ownview.serve.accepting import FairServer
from ownview.serve.counters import Counters, make

CONNECTIONS = 20


async def _never(scope: object, receive: object, send: object) -> None:
    """Nothing is asked."""


def _server(listening: socket.socket, metrics: Counters) -> FairServer:
    config = uvicorn.Config(_never, interface="asgi3", http=BoundedHead, ws="none", lifespan="off", log_config=None)
    config.load()
    server = FairServer(config, listening, metrics)
    server.lifespan = config.lifespan_class(config)
    return server


async def _shared(path: Path) -> list[int]:
    make(path, 2)
    listening = socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS)
    servers = [_server(listening.dup(), Counters(path, 2, row)) for row in range(2)]
    # All of them wait before any worker looks: whoever took what waits would take everything.
    waiting = [socket.create_connection(listening.getsockname()) for _ in range(CONNECTIONS)]
    try:
        for server in servers:
            await server.startup()
        async with asyncio.timeout(30):
            while sum(len(one.server_state.connections) for one in servers) < CONNECTIONS:
                await asyncio.sleep(0.01)
        return [len(one.server_state.connections) for one in servers]
    finally:
        for one in (*waiting, listening):
            one.close()
        for server in servers:
            await server.shutdown()


def test_workers_take_half_of_the_connections_that_wait_each(tmp_path: Path) -> None:
    assert asyncio.run(_shared(tmp_path / "metrics")) == [CONNECTIONS // 2] * 2


def test_metrics_say_how_many_connections_there_are(tmp_path: Path) -> None:
    make(tmp_path / "metrics", 2)
    first, second = (Counters(tmp_path / "metrics", 2, row) for row in range(2))
    first.connected(3)
    assert first.most_connected
    assert not second.most_connected
    second.connected(4)
    assert (first.most_connected, second.most_connected) == (False, True)
    assert "ownview_connections 7\n" in first.text([])
