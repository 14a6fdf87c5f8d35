"""The two folders of a deployment: the server's, and that of each place.

FOLDER/deployment.toml      how places reach the server, how rounds are conducted, and what others may take of it
FOLDER/agreement            method, settings, items and titles; see `deploy.agreement`
FOLDER/certificates/        ca.crt, ca.key, server.crt, server.key, NAME.crt; keys.json: whose key is whose
FOLDER/invitations/         NAME.json, to be carried to a place that shall join; gone when it has
FOLDER/rounds/              checkpoint, identities, log of participants; see `deploy.coordinator`

PLACE/place.toml            name of the place and address of its server
PLACE/certificates/         ca.crt, NAME.crt, NAME.key: made at the place
PLACE/...                   its home, see `deploy.places.home`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import tomli_w

from ownview.base.errors import DataError, SettingError
from ownview.base.files import make_folder, write_bytes, write_folder, write_text
from ownview.config.layers import parse_toml, toml_text
from ownview.config.settings import Settings, setting
from ownview.deploy.agreement import Agreement, read_agreement
from ownview.deploy.https.limits import Limits
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.settings import CoordinatorSettings

_HERE = ("localhost", "127.0.0.1")
_NO_MORE = {
    "flower": "it went through Flower's private interfaces, and its link kept bodies of unauthenticated senders in "
    "memory; it comes back through Flower's public interface",
    "tls": "its own frames on plain TLS let a thousand half-open connections end the server",
}


def require_transport(name: str) -> None:
    """Refuse in one line a carrier that is no more."""
    if name in _NO_MORE:
        raise SettingError(f"transport={name!r}: this carrier is gone: {_NO_MORE[name]}; expected 'https'")


@dataclass(frozen=True)
class Reach(Settings):
    """How places reach their server."""

    title: ClassVar[str] = "deployment"

    transport: str = setting("https", "what carries messages", choices=("https",))
    host: str = setting("127.0.0.1", "name or address by which places find the server; its certificate has it")
    port: int = setting(9443, "of the server", low=1, high=65535)

    @property
    def address(self) -> tuple[str, int]:
        """Address of the server."""
        return self.host, self.port


@dataclass(frozen=True)
class Plan(Reach):
    """What a server does, and where it listens."""

    listen: str = setting("127.0.0.1", "address to listen at; 0.0.0.0 for every one that the machine has")
    rounds: int = setting(20, "of training", low=1)


@dataclass(frozen=True)
class Membership(Reach):
    """What a place knows of its server."""

    name: str = setting("", "of the place; the server knows it by its key")


class ServerFolder:
    """A server's files by meaning.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_file, self.agreement_file = path / "deployment.toml", path / "agreement"
        self.certificates, self.rounds, self.invitations = path / "certificates", path / "rounds", path / "invitations"
        self.keys = KnownKeys(self.certificates / "keys.json")

    @property
    def exists(self) -> bool:
        """Whether `ownview deploy init` has made it."""
        return self.plan_file.is_file()

    def require(self) -> None:
        """Refuse a folder that is none."""
        if not self.exists:
            raise DataError(f"{self.path}: no deployment; expected deployment.toml, as ownview deploy init writes it")

    def plan(self) -> tuple[Plan, CoordinatorSettings]:
        """How places reach the server, and how it conducts its rounds."""
        values = self._values()
        conduct = self._table(values, "conduct")
        values.pop("limits", None)
        require_transport(str(values.get("transport", "")))
        return Plan.of(values), CoordinatorSettings.of(conduct)

    def limits(self) -> Limits:
        """What others may take of the server."""
        return Limits.of(self._table(self._values(), "limits"))

    def keep_plan(self, plan: Plan, conduct: CoordinatorSettings, limits: Limits | None = None) -> None:
        """Write it down; a person may change it between two runs of the server."""
        tables = {"conduct": conduct.plain(), "limits": (limits or Limits()).plain()}
        write_text(self.plan_file, tomli_w.dumps({**plan.plain(), **tables}))

    def agreement(self) -> Agreement:
        """What all places agree on."""
        self.require()
        return read_agreement(self.agreement_file)

    def _values(self) -> dict[str, Any]:
        self.require()
        return dict(parse_toml(toml_text(self.plan_file, "deployment"), str(self.plan_file)))

    def _table(self, values: dict[str, Any], name: str) -> Mapping[str, Any]:
        found = values.pop(name, {})
        if not isinstance(found, dict):
            raise DataError(f"{self.plan_file}: {name}={found!r}: expected a table")
        return found


def create_server_folder(path: Path, agreement: Agreement, plan: Plan, conduct: CoordinatorSettings) -> ServerFolder:
    """A server's folder, whole or not at all; what cannot be deployed is refused first."""
    # Here, for pages are made of deployments and of all else, mostly without the extra `deploy`.
    from ownview.deploy.identities.certificates import write_authority, write_server  # noqa: PLC0415

    agreement.terms()

    def fill(temporary: Path) -> None:
        made = ServerFolder(temporary)
        make_folder(made.certificates)
        write_authority(made.certificates)
        write_server(made.certificates, tuple(dict.fromkeys((*_HERE, plan.host))))
        write_bytes(made.agreement_file, agreement.pack())
        made.keep_plan(plan, conduct)

    write_folder(path, fill)
    return ServerFolder(path)


class PlaceFolder:
    """A place's files by meaning; all else that is in its home is `deploy.places.home`'s.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.certificates = path, path / "place.toml", path / "certificates"

    @property
    def exists(self) -> bool:
        """Whether `ownview deploy join` has made it."""
        return self.file.is_file()

    def membership(self) -> Membership:
        """What the place knows of its server."""
        if not self.exists:
            raise DataError(f"{self.path}: no folder of a place; expected place.toml, as ownview deploy join writes it")
        values = parse_toml(toml_text(self.file, "place"), str(self.file))
        require_transport(str(values.get("transport", "")))
        return Membership.of(values)

    def keep(self, membership: Membership) -> None:
        """Write it down."""
        write_text(self.file, tomli_w.dumps(membership.plain()))
