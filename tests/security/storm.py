"""What a stranger can do at a server's port: silent connections, garbage, TLS without a certificate, wrong requests."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from ownview.deploy.https.contexts import place_context

Address = tuple[str, int]
_CLIENT_HELLO = bytes.fromhex("160301020001000 1fc0303".replace(" ", "")) + bytes(32)
"""The beginning of a handshake of 512 bytes, of which no more comes."""
_GLANCE = 0.2
"""Seconds that an attacker waits for an answer: some bytes are the beginning of something, and get none."""
_GARBAGE = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\xff\xff" + bytes(300),
    b"\x00" * 400,
    b"OVP\x01" + b"\xff" * 200,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


@contextlib.contextmanager
def half_open(address: Address, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing, or begin a handshake and stop."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(count):
            with contextlib.suppress(OSError):  # the server may hang up on older ones, and on this one
                one = stack.enter_context(socket.create_connection(address, timeout=60))
                if number % 2:
                    one.sendall(_CLIENT_HELLO)
                made.append(one)
        yield made


def still_open(connections: list[socket.socket]) -> int:
    """How many the other end has not closed."""
    found = 0
    for one in connections:
        try:
            found += one.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            found += 1
        except OSError:
            continue
    return found


def garbage(address: Address, chance: random.Random) -> None:
    """Bytes that are no handshake."""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=60) as one:
        one.sendall(chance.choice(_GARBAGE) + chance.randbytes(64))
        if chance.random() < 0.5:
            one.settimeout(_GLANCE)
            one.recv(100)


def without_certificate(address: Address, body: int) -> bool:
    """TLS without a certificate, and then a request with a body; True where the server answered it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST /v1/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n".encode()
    return _answered(address, context, head, body)


def wrong_request(address: Address, certificates: Path, name: str, chance: random.Random) -> bool:
    """A request that an enrolled place should not make; True where it was answered with a success."""
    head = chance.choice(
        [
            b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nownview-message: 7\r\nContent-Length: 900000000\r\n\r\n",
            b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
            b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nownview-message: -1\r\nContent-Length: 4\r\n\r\n",
            b"POST /v1/enrol HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
            b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
            b"DELETE /v9/next HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /v1/next HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
            b"GET /v1/next HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"[:40],
            b"\xff\xfe\x00 no HTTP at all\r\n\r\n",
        ]
    )
    return _answered(address, place_context(certificates, name), head, 4096)


def _answered(address: Address, context: ssl.SSLContext, head: bytes, body: int) -> bool:
    """Whether a request got a response of success; the body is sent for as long as the server takes it."""
    piece = bytes(min(body, 1 << 16))
    try:
        plain = socket.create_connection(address, timeout=5)
        with plain, context.wrap_socket(plain, server_hostname=address[0]) as one:
            one.sendall(head)
            for _ in range(0, body, len(piece) or 1):
                one.sendall(piece)
            one.settimeout(_GLANCE)
            return one.recv(100).startswith(b"HTTP/1.1 2")
    except OSError:
        return False
