"""A place joins: it makes its key, has it certified by the invitation, and is a folder that can be served."""

from __future__ import annotations

import ssl
import tempfile
import time
from http import HTTPStatus
from pathlib import Path

from ownview.base.errors import DataError, MessageError, OutputError
from ownview.base.files import make_folder, write_bytes
from ownview.deploy.folders import Membership, PlaceFolder
from ownview.deploy.https.contexts import place_context, tls_failure
from ownview.deploy.https.polling import Line
from ownview.deploy.identities.certificates import certificate_request, fingerprint, new_key, read_key, write_key
from ownview.deploy.identities.invitations import Invitation

_PATIENCE = 10.0
_PAUSE = 0.2
_LONGEST = 1 << 14
"""Bytes of a certificate at most."""


def join(file: Path, path: Path, patience: float = _PATIENCE) -> PlaceFolder:
    """Make a place's folder. Where it is interrupted, joining again goes on with the same key.

    Args:
        file: the invitation.
        path: of the folder, which may hold the users' ratings already.
        patience: seconds for which a server that does not answer is tried again.

    Raises:
        MessageError: the server refuses the invitation, is not the one that it names, or does not answer.
    """
    folder = PlaceFolder(path)
    if folder.exists:
        raise OutputError(f"{path}: is the folder of a place already; choose another folder")
    invitation = Invitation.read(file)
    make_folder(folder.certificates)
    key_file = folder.certificates / f"{invitation.name}.key"
    if not key_file.is_file():
        write_key(key_file, new_key())
    request = certificate_request(invitation.name, read_key(key_file))
    certificate = _certified(invitation, request, patience)
    write_bytes(folder.certificates / "ca.crt", invitation.authority.encode())
    write_bytes(folder.certificates / f"{invitation.name}.crt", certificate)
    folder.keep(Membership(host=invitation.host, port=invitation.port, name=invitation.name))
    return folder


def _certified(invitation: Invitation, request: bytes, patience: float) -> bytes:
    """Have a request signed; TLS libraries want certificates in files, so they are there for a moment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, content in (("ca.crt", invitation.authority), ("once.crt", invitation.certificate)):
            write_bytes(folder / what, content.encode())
        write_bytes(folder / "once.key", invitation.key.encode(), private=True)
        try:
            context = place_context(folder, "once")
        except DataError as error:
            raise DataError(f"invitation of place {invitation.name!r}: its certificates are damaged") from error
    until = time.monotonic() + patience
    while True:
        try:
            return _asked(Line((invitation.host, invitation.port), context, max(patience, 1.0)), request)
        except ssl.SSLError as error:
            if not isinstance(error, ssl.SSLEOFError):
                raise MessageError(f"{invitation.host}:{invitation.port}: {tls_failure(error)}") from error
        except OSError as error:
            if time.monotonic() > until:
                raise MessageError(
                    f"{invitation.host}:{invitation.port}: no server answers there ({error}); expected ownview deploy "
                    "server at work"
                ) from error
        time.sleep(_PAUSE)


def _asked(line: Line, request: bytes) -> bytes:
    try:
        response = line.request("POST", "enrol", request)
        body = line.read(response, _LONGEST)
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ConnectionError(f"the server answered with status {response.status}")
        if response.status != HTTPStatus.OK:
            raise MessageError(body.decode("utf-8", "replace").strip())
        fingerprint(body)  # raises ValueError where it is no certificate
    except ValueError as error:
        raise MessageError(f"no certificate came ({error})") from error
    else:
        return body
    finally:
        line.close()
