"""Messages on a stream: the length in four bytes, then the message; and a greeting before the first one."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, MessageError
from ownview.deploy.envelope import VERSION

LONGEST = 1 << 30
"""Bytes of a message at most, so that nobody can ask for more memory than is meant."""
_SILENCE = 60
"""Seconds without a word after which it is asked whether the other machine is still there."""
_SHORT = 1 << 12
"""Bytes of a greeting at most: whoever sends it need not be known yet."""


def send_frame(link: socket.socket, message: bytes) -> None:
    """Send one message whole."""
    link.sendall(len(message).to_bytes(4, "little") + message)


def receive_frame(link: socket.socket, longest: int = LONGEST) -> bytes:
    """Receive one message whole; raises `ConnectionError` where the other end has gone."""
    length = int.from_bytes(_exactly(link, 4), "little")
    if length > longest:
        raise MessageError(f"a message of {length} bytes; expected {longest} at most")
    return _exactly(link, length)


def greet(link: socket.socket, **words: Any) -> None:
    """Say which version this program speaks, and a few words."""
    send_frame(link, json.dumps({"version": VERSION, **words}).encode())


def greeted(link: socket.socket) -> dict[str, Any]:
    """What the other end said; raises `MessageError` where it speaks another version or refuses."""
    try:
        found = json.loads(receive_frame(link, _SHORT))
    except ValueError as error:
        raise MessageError("no greeting of a place or coordinator came") from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        spoken = found.get("version") if isinstance(found, dict) else None
        raise MessageError(f"the other end speaks version {spoken} of messages; this program speaks version {VERSION}")
    if "refused" in found:
        raise MessageError(str(found["refused"]))
    return found


def context(folder: Path, name: str, *, server: bool) -> ssl.SSLContext:
    """TLS 1.3 in which both ends show a certificate of the folder's authority.

    Args:
        folder: with ca.crt, NAME.crt and NAME.key; see `deploy.certificates`.
        name: of this end.
        server: whether it is the end that is connected to.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.verify_mode = ssl.CERT_REQUIRED
    if server:
        made.num_tickets = 0  # connections stay open; and what comes on one is a message and nothing else
    try:
        made.load_verify_locations(folder / "ca.crt")
        made.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    except (OSError, ssl.SSLError) as error:
        raise DataError(f"{folder}: expected ca.crt, {name}.crt and {name}.key: {error}") from error
    return made


def notice_loss(link: socket.socket) -> None:
    """Have the system find out by itself that the other machine has gone without a word, as in a power cut.

    Both ends mostly wait for the other to speak, and would wait for ever on a line that nobody hangs up. Where nothing
    comes for `_SILENCE` seconds the system asks, and after as long without an answer the line is broken; so it is where
    something was sent and its arrival is not confirmed for twice as long.
    """
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": _SILENCE,
        "TCP_KEEPINTVL": _SILENCE // 4,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": 2 * _SILENCE * 1000,  # in milliseconds
    }
    for name, value in wanted.items():  # not every system has all of them
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _exactly(link: socket.socket, length: int) -> bytes:
    parts, left = [], length
    while left:
        part = link.recv(min(left, 1 << 20))
        if not part:
            raise ConnectionError("the other end has gone")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
