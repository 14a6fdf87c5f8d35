"""TLS 1.3 of both ends: each shows a certificate of the deployment's authority, and the server its name."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

from ownview.base.errors import DataError
from ownview.deploy.identities.certificates import SERVER

_SILENCE = 60
"""Seconds without a byte after which the system asks whether the other machine is still there."""


def server_context(folder: Path) -> ssl.SSLContext:
    """The server's; a client that shows no certificate for clients of the folder's authority ends at the handshake.

    Args:
        folder: with ca.crt, server.crt and server.key.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.num_tickets = 0  # every connection shows its certificate
    return _filled(made, folder, SERVER)


def place_context(folder: Path, name: str) -> ssl.SSLContext:
    """A place's; it accepts as its server only a certificate for servers with the name it asked for.

    Args:
        folder: with ca.crt, NAME.crt and NAME.key.
        name: of the place.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = True
    return _filled(made, folder, name)


def _filled(made: ssl.SSLContext, folder: Path, name: str) -> ssl.SSLContext:
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.verify_mode = ssl.CERT_REQUIRED
    try:
        made.load_verify_locations(folder / "ca.crt")
        made.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    except (OSError, ssl.SSLError) as error:
        raise DataError(f"{folder}: expected ca.crt, {name}.crt and {name}.key: {error}") from error
    return made


_WRONG_TIME = (9, 10)
"""OpenSSL's codes for a certificate that is not valid yet, or not any more."""


def tls_failure(error: OSError) -> str:
    """Why a handshake failed, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _WRONG_TIME:
        now = datetime.now(UTC).isoformat(timespec="minutes")
        return f"{error.verify_message} by this machine's clock, {now}; expected a right clock, or a newer certificate"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"a certificate that does not fit ({error.verify_message}); expected one of the authority in ca.crt"
    if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason or ""):
        return f"the other end refuses this certificate ({error.reason}); expected one of its own authority"
    return f"no mutual TLS ({error}); expected a certificate of the authority in ca.crt"


def notice_loss(connection: socket.socket) -> None:
    """Have the system find out by itself that the other machine has gone without a word, as in a power cut.

    Without it both ends would wait for ever. Where nothing comes for `_SILENCE` seconds the system asks, and after as
    long without an answer the connection is broken; so it is where data that was sent is not confirmed for twice as
    long.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": _SILENCE,
        "TCP_KEEPINTVL": _SILENCE // 4,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": 2 * _SILENCE * 1000,  # in milliseconds
    }
    for name, value in wanted.items():  # not every system has all of them
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
