"""The socket that a server listens at."""

from __future__ import annotations

import os
import socket

from ownview.base.errors import DataError, SettingError

_BACKLOG = 1024


def listening(host: str, port: int) -> socket.socket:
    """A socket of systemd where it hands one over (LISTEN_FDS), else a new one.

    It knows that it is of TCP: asyncio sends what is small at once only where a socket says so, and an answer in two
    parts, head and body, else waits 40 ms for the other end to confirm the first (Nagle's rule and delayed ACKs).
    """
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        return socket.socket(fileno=3)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingError(f"--host {host}: {error.strerror or error}; expected an address of this machine") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError as error:
        made.close()
        raise DataError(f"{host}:{port}: cannot be listened at: {error.strerror}; choose another --port") from error
    made.listen(_BACKLOG)
    return made
