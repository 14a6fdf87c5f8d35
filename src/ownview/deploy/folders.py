"""The two folders of a deployment: the server's, and the one that goes to each place.

FOLDER/deployment.toml      how places reach the server, and how rounds are conducted
FOLDER/agreement            method, settings, items and titles; see `deploy.agreement`
FOLDER/certificates/        ca.crt, ca.key, server.crt, server.key, NAME.crt
FOLDER/keys.json            whose key is whose
FOLDER/rounds/              checkpoint, identities, log of participants; see `deploy.coordinator`
FOLDER/places/NAME/         to be carried to the place: place.toml and certificates/; its home, see `deploy.home`
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import tomli_w

from ownview.base.errors import DataError
from ownview.base.files import write_text
from ownview.config.layers import parse_toml, toml_text
from ownview.config.settings import Settings, setting
from ownview.deploy.agreement import Agreement, read_agreement
from ownview.deploy.coordinator import Conduct
from ownview.deploy.keys import KnownKeys

TRANSPORTS = ("flower", "tls")


@dataclass(frozen=True)
class Reach(Settings):
    """How places reach their server."""

    title: ClassVar[str] = "deployment"

    transport: str = setting("flower", "what carries messages", choices=TRANSPORTS)
    host: str = setting("127.0.0.1", "name or address by which places find the server")
    port: int = setting(9443, "of the server", low=1, high=65535)

    @property
    def address(self) -> tuple[str, int]:
        """Of the server."""
        return self.host, self.port


@dataclass(frozen=True)
class Plan(Reach):
    """What a server does, and where it listens."""

    listen: str = setting("127.0.0.1", "address to listen at; 0.0.0.0 for every one that the machine has")
    rounds: int = setting(20, "of training", low=1)

    @property
    def reached_here(self) -> str:
        """An address by which this machine reaches itself; the server's certificate has it."""
        return "127.0.0.1" if self.listen in ("0.0.0.0", "127.0.0.1", "::") else self.host


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
        self.certificates, self.rounds, self.places = path / "certificates", path / "rounds", path / "places"
        self.keys = KnownKeys(path / "keys.json")

    @property
    def exists(self) -> bool:
        """Whether `ownview deploy init` has made it."""
        return self.plan_file.is_file()

    def require(self) -> None:
        """Refuse a folder that is none."""
        if not self.exists:
            raise DataError(f"{self.path}: no deployment; expected deployment.toml, as ownview deploy init writes it")

    def plan(self) -> tuple[Plan, Conduct]:
        """How places reach the server, and how it conducts its rounds."""
        self.require()
        values = parse_toml(toml_text(self.plan_file, "deployment"), str(self.plan_file))
        conduct = values.pop("conduct", {})
        if not isinstance(conduct, dict):
            raise DataError(f"{self.plan_file}: conduct={conduct!r}: expected a table")
        return Plan.of(values), Conduct.of(conduct)

    def keep_plan(self, plan: Plan, conduct: Conduct) -> None:
        """Write it down; a person may change it between two runs of the server."""
        write_text(self.plan_file, tomli_w.dumps({**plan.plain(), "conduct": conduct.plain()}))

    def agreement(self) -> Agreement:
        """What all places agree on."""
        self.require()
        return read_agreement(self.agreement_file)


class PlaceFolder:
    """A place's files by meaning; all else that is in its home is `deploy.home`'s.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.certificates = path, path / "place.toml", path / "certificates"

    @property
    def exists(self) -> bool:
        """Whether `ownview deploy init` has made it."""
        return self.file.is_file()

    def membership(self) -> Membership:
        """What the place knows of its server."""
        if not self.exists:
            raise DataError(
                f"{self.path}: no folder of a place; expected place.toml, as ownview deploy init writes it into places/"
            )
        return Membership.of(parse_toml(toml_text(self.file, "place"), str(self.file)))

    def keep(self, membership: Membership) -> None:
        """Write it down."""
        write_text(self.file, tomli_w.dumps(membership.plain()))
