"""Make the folders of a deployment: an authority of its own, a certificate for the server, a key for every place."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ownview.base.errors import DataError, SettingError
from ownview.base.files import make_folder, write_bytes, write_folder, writing
from ownview.deploy.agreement import Agreement
from ownview.deploy.certificates import require_place_name, write_authority, write_place, write_server
from ownview.deploy.coordinator import Conduct
from ownview.deploy.folders import Membership, PlaceFolder, Plan, ServerFolder

_HERE = ("localhost", "127.0.0.1")


def found(folder: Path, agreement: Agreement, plan: Plan, conduct: Conduct) -> ServerFolder:
    """A server's folder, whole or not at all; what cannot be deployed is refused first."""
    agreement.terms()

    def fill(temporary: Path) -> None:
        made = ServerFolder(temporary)
        make_folder(made.certificates)
        write_authority(made.certificates)
        write_server(made.certificates, tuple(dict.fromkeys((*_HERE, plan.host))))
        write_bytes(made.agreement_file, agreement.pack())
        made.keep_plan(plan, conduct)

    write_folder(folder, fill)
    return ServerFolder(folder)


def require_new(server: ServerFolder, names: Sequence[str]) -> None:
    """Refuse names that places cannot have, or have already."""
    known = set(server.keys.names().values())
    for name in names:
        require_place_name(name)
        if name in known or names.count(name) > 1:
            raise SettingError(f"--places {name}: is a place already; expected another name")


def add_places(server: ServerFolder, names: Sequence[str]) -> list[PlaceFolder]:
    """A folder for each of some new places; from now on whoever has its key is that place."""
    plan, _ = server.plan()
    require_new(server, names)
    return [_place(server, plan, name) for name in names]


def _place(server: ServerFolder, plan: Plan, name: str) -> PlaceFolder:
    made = PlaceFolder(server.places / name)
    if made.path.exists():
        raise DataError(f"{made.path}: already exists; expected no folder for a new place")
    fingerprint = write_place(server.certificates, name)

    def fill(temporary: Path) -> None:
        own = PlaceFolder(temporary)
        make_folder(own.certificates)
        with writing(own.certificates):
            shutil.copy(server.certificates / "ca.crt", own.certificates)
            shutil.copy(server.certificates / f"{name}.crt", own.certificates)
            # The key is the place's alone; once the folder has been carried there, nobody else has it.
            shutil.move(server.certificates / f"{name}.key", own.certificates)
        own.keep(Membership(plan.transport, plan.host, plan.port, name=name))

    write_folder(made.path, fill)
    server.keys.enrol(name, fingerprint)
    return made
