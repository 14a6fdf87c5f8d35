"""Status of a deployment, from its files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ownview.base.errors import DataError
from ownview.deploy.coordination.participants import CountedRound, read_log
from ownview.deploy.coordination.register import Register
from ownview.deploy.folders import PlaceFolder, ServerFolder
from ownview.deploy.places.home import Home
from ownview.deploy.running import process_at


@dataclass(frozen=True)
class ServerStanding:
    """Status of a server.

    Args:
        process: at work now; None for none.
        label: what people call the model.
        where: transport and address.
        rounds: that were asked for.
        done: rounds that were counted, oldest first.
        users: by place, how many have come; places that were never there have none.
    """

    process: int | None
    label: str
    where: str
    rounds: int
    done: list[CountedRound]
    users: dict[str, int]


@dataclass(frozen=True)
class PlaceStanding:
    """Status of a place.

    Args:
        process: at work now; None for none.
        name: of the place.
        where: transport and address of its server.
        round: whose result it has; 0 for none.
        users: that live here, as far as it knows.
        sent: messages that have left, and their bytes.
    """

    process: int | None
    name: str
    where: str
    round: int
    users: int
    sent: tuple[int, int]


def standing(path: Path) -> ServerStanding | PlaceStanding:
    """Status from the folder of a server or of a place."""
    if ServerFolder(path).exists:
        return _server(ServerFolder(path))
    if PlaceFolder(path).exists:
        return _place(PlaceFolder(path))
    raise DataError(f"{path}: neither a server's folder nor a place's; expected deployment.toml or place.toml in it")


def worked_on(path: Path) -> Path:
    """The folder that a process at work on a server's or a place's folder holds."""
    return path if ServerFolder(path).exists else path / "state"


def _server(folder: ServerFolder) -> ServerStanding:
    plan, _ = folder.plan()
    agreement = folder.agreement()
    known = Register(folder.rounds / "register.json", agreement.clients).places
    users = {name: len(known.get(name, ())) for name in sorted(folder.keys.names().values())}
    where = f"{plan.transport} at {plan.host}:{plan.port}"
    done = read_log(folder.rounds / "participants.jsonl")
    return ServerStanding(process_at(folder.path), agreement.label, where, plan.rounds, done, users)


def _place(folder: PlaceFolder) -> PlaceStanding:
    about, home = folder.membership(), Home(folder.path)
    sent = home.sent()
    volume = sum(int(one.get("messages", 1)) for one in sent), sum(int(one["bytes"]) for one in sent)
    where = f"{about.transport} at {about.host}:{about.port}"
    return PlaceStanding(
        process_at(home.state), about.name, where, home.newest().round, len(home.members().users), volume
    )
