"""A socket that listens is one of TCP, so that answers in two parts go at once."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ownview.base.errors import DataError
from ownview.base.http.listening import listening


def test_what_is_accepted_sends_at_once() -> None:
    """Else a body waits until the other end has confirmed the head, which it puts off by 40 ms."""

    async def waits() -> bool:
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection: socket.socket = writer.get_extra_info("socket")
            accepted.set_result(not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listening("127.0.0.1", 0) as at:
            async with await asyncio.start_server(note, sock=at):
                _, writer = await asyncio.open_connection(*at.getsockname())
                try:
                    return await accepted
                finally:
                    writer.close()

    assert not asyncio.run(waits())


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with listening("127.0.0.1", 0) as at, pytest.raises(DataError, match="cannot be listened at: Address already"):
        listening(*at.getsockname())
