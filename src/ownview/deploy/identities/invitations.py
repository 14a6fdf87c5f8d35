"""Invitations: how a place that has no certificate yet gets one, without its key ever leaving it.

The server makes an invitation, a file that a person carries to the place. It holds the address and the authority of
the server, and a certificate with its key that is good for one request: to have the place's own key certified. The
place makes that key itself and sends a certificate request. So the server's port stays closed to everybody without a
certificate of its authority, and the server never has a place's key.

A reader of an invitation that its place has not used yet can join in its stead, once; the place then learns that its
invitation was used. Invitations end after some days.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ownview.base.errors import DataError, MessageError, SettingError
from ownview.base.files import make_folder, write_bytes
from ownview.deploy.folders import ServerFolder
from ownview.deploy.identities.certificates import (
    certificate_request,
    fingerprint,
    key_pem,
    new_key,
    require_place_name,
    serial_number,
    sign_request,
)

_LONGEST_FILE = 1 << 16


@dataclass(frozen=True)
class Invitation:
    """What a place needs to join.

    Args:
        name: of the place.
        host, port: of the server; the host is the name that its certificate must have.
        until: ISO date and time in UTC.
        authority: certificate of the deployment's authority, PEM.
        certificate: good for one request, PEM.
        key: of that certificate, PEM.
    """

    name: str
    host: str
    port: int
    until: str
    authority: str
    certificate: str
    key: str

    def write(self, file: Path) -> None:
        """Write it so that its owner alone can read it."""
        write_bytes(file, (json.dumps(asdict(self), indent=2) + "\n").encode(), private=True)

    @classmethod
    def read(cls, file: Path) -> Invitation:
        """From a file; raises `DataError` where it is none."""
        try:
            if file.stat().st_size > _LONGEST_FILE:
                raise ValueError("it is too long")
            one = cls(**json.loads(file.read_text(encoding="utf-8")))
            require_place_name(one.name)
            if not all(isinstance(value, int if name == "port" else str) for name, value in asdict(one).items()):
                raise ValueError("a value is of another type")
        except OSError as error:
            raise DataError(f"{file}: cannot be read: {error.strerror}; expected an invitation") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"{file}: no invitation ({error}); expected one as ownview deploy invite writes it"
            ) from error
        return one


def require_new(server: ServerFolder, names: Sequence[str]) -> None:
    """Refuse names that places cannot have, or have already."""
    known = set(server.keys.names().values())
    for name in names:
        require_place_name(name)
        if name in known or names.count(name) > 1:
            raise SettingError(
                f"place {name}: is a place already; expected another name, or ownview deploy revoke first"
            )


def invite(server: ServerFolder, name: str, days: float = 7) -> Path:
    """Write an invitation into the server's folder; returns its file. An earlier one for the same name is void."""
    require_new(server, [name])
    plan, _ = server.plan()
    key, valid = new_key(), timedelta(days=days)
    certificate = sign_request(server.certificates, f"invitation.{name}"[:64], certificate_request(name, key), valid)
    until = datetime.now(UTC) + valid
    authority = (server.certificates / "ca.crt").read_text(encoding="ascii")
    made = Invitation(
        name, plan.host, plan.port, until.isoformat(timespec="seconds"), authority, certificate.decode(),
        key_pem(key).decode(),
    )  # fmt: skip
    make_folder(server.invitations)
    file = server.invitations / f"{name}.json"
    made.write(file)
    server.keys.invite(name, fingerprint(certificate), until)
    return file


def accept(server: ServerFolder, invitation: str, request: bytes) -> bytes:
    """The certificate (PEM) of a place that joins.

    Args:
        server: its folder, with the authority.
        invitation: fingerprint of the invitation's key, with which the caller connected.
        request: certificate request for the place's own key, PEM.

    Raises:
        MessageError: the invitation is void, or the request is none.
    """
    invited = server.keys.invited(invitation)
    if invited is None:
        raise MessageError("an invitation that is unknown or was withdrawn; expected one of this deployment")
    certificate = sign_request(server.certificates, invited.name, request)
    name = server.keys.accept(invitation, fingerprint(certificate))
    write_bytes(server.certificates / f"{name}.crt", certificate)
    (server.invitations / f"{name}.json").unlink(missing_ok=True)
    return certificate


def revoke(server: ServerFolder, name: str) -> None:
    """The key of a place counts no more, from now on; its name may be invited again with another key."""
    require_place_name(name)
    server.require()
    file = server.certificates / f"{name}.crt"
    server.keys.revoke(name, serial_number(file.read_bytes()) if file.is_file() else "")
    (server.invitations / f"{name}.json").unlink(missing_ok=True)
