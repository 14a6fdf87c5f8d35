"""Runs one of the two servers: the ASGI app on uvicorn, and for share b the work of confirming and opening."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.base.errors import SettingError
from ownview.base.files import write_bytes
from ownview.base.http.bounded_head import BoundedHead
from ownview.base.http.listening import listening
from ownview.deploy.https.bounded_log import BoundedLog, LogHandler, Say
from ownview.one_message.app import ShareServer

_KEY_BYTES = 32
_CONNECTIONS = 256


def new_key(path: Path) -> bytes:
    """Make a private key, and return the public one (32 bytes)."""
    key = X25519PrivateKey.generate()
    write_bytes(path, key.private_bytes_raw(), private=True)
    return key.public_key().public_bytes_raw()


def read_secret(path: Path) -> bytes:
    """A key of 32 bytes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror}; expected a key of {_KEY_BYTES} bytes") from error
    if len(content) != _KEY_BYTES:
        raise SettingError(f"{path}: {len(content):,} bytes; expected a key of {_KEY_BYTES}")
    return content


def run_server(server: ShareServer, host: str, port: int, origins: Sequence[str], say: Say) -> None:
    """Until SIGTERM or SIGINT."""
    bound = listening(host, port)
    logging.getLogger("uvicorn").handlers = [LogHandler(BoundedLog(say, 30))]
    config = uvicorn.Config(
        server.app(origins), http=BoundedHead, ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=20,
    )  # fmt: skip
    asyncio.run(_both(server, uvicorn.Server(config), bound, say))


async def _both(server: ShareServer, http: uvicorn.Server, bound: socket.socket, say: Say) -> None:
    working = asyncio.create_task(server.work()) if server.share == "b" else None
    if working is not None:  # a server that takes messages and never opens one would look well
        working.add_done_callback(lambda _: setattr(http, "should_exit", True))
    host, port = bound.getsockname()[:2]
    say(f"share {server.share} is ready at http://{host}:{port}")
    await http.serve([bound])
    if working is not None:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
