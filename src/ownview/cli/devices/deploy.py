"""`ownview deploy`: a federation of real devices: its folders, its processes, and how it stands."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ownview.base.display.shown import one_line
from ownview.base.errors import SettingError
from ownview.cli import options
from ownview.cli.display.terminal import Console
from ownview.cli.options import with_privacy
from ownview.cli.settings import with_settings
from ownview.cli.trusting import names_a_file

if TYPE_CHECKING:
    from ownview.deploy.agreement import Agreement
    from ownview.deploy.folders import ServerFolder
    from ownview.deploy.status import PlaceStanding, ServerStanding
    from ownview.runs.experiment import Experiment

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Federations of real devices, each with its own data: folders, invitations, processes.",
)
Folder = Annotated[Path, typer.Argument(help="Folder of the deployment, on the server's machine.")]
Either = Annotated[Path, typer.Argument(help="Folder of a server or of a place.")]
PrivacyFloor = Annotated[
    str | None,
    typer.Option(
        "--floor", help="Weakest privacy under which the place answers, as in local:epsilon=8 or masked; kept from now."
    ),
]
DAYS = 7.0


class _KnownAtPlaces(NamedTuple):
    """What every place has beside users and items: names of columns about its users, and whether there are ratings."""

    user_columns: list[str]
    ratings: bool


_LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
"""Where to listen so that this machine alone can connect, by the name of the host."""


@app.command()
def init(
    folder: Folder,
    method: Annotated[str, typer.Argument(help="A federated method (`ownview ls methods`).", callback=names_a_file)],
    places: Annotated[str, typer.Option("--places", help="Names of places to invite, as in east,north.")] = "",
    items: Annotated[
        str, typer.Option("--items", help="What is recommended: a file with columns item,title, or a dataset.")
    ] = "goodbooks",
    users: Annotated[int, typer.Option("--users", help="Users at most, of all places together.", min=1)] = 1000,
    users_per_place: Annotated[
        int | None,
        typer.Option(
            "--users-per-place", help="Users that one place may bring; an equal share of --users if not given.", min=1
        ),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of training.", min=1)] = 20,
    host: Annotated[str, typer.Option("--host", help="By which places find the server.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Of the server.", min=1, max=65535)] = 9443,
    transport: Annotated[str, typer.Option("--transport", help="What carries messages: https.")] = "https",
    quorum: Annotated[
        float, typer.Option("--quorum", help="Share of a round's users that must answer; 1 waits for all.")
    ] = 1.0,
    least: Annotated[int, typer.Option("--least", help="Users that must be there for a round to begin.", min=1)] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal models.")] = 0,
    order: Annotated[
        str, typer.Option("--order", help="What ratings.csv tells of their order: times, rows, or none.")
    ] = "times",
    hold_out: Annotated[
        bool, typer.Option("--hold-out", help="Users keep their latest rating out of training, to measure by it.")
    ] = False,
    ratings: Annotated[
        bool, typer.Option("--ratings", help="Every place has a column rating, for methods that ask for ratings.")
    ] = False,
    user_columns: Annotated[
        str,
        typer.Option("--user-columns", help="Columns of every place's users.csv, as in age,city; values stay there."),
    ] = "",
    privacy: options.Privacy = None,
    sets: options.Sets = None,
    plugin: options.Plugins = None,
    data_dir: options.DataDir = None,
) -> None:
    """Make a server's folder: certificates, agreement, configuration, and invitations for places."""
    from ownview.deploy.carriers import require_packages  # noqa: PLC0415 - slow to import, and help does without

    require_packages()
    from ownview.deploy.folders import Plan, ServerFolder, create_server_folder, require_transport  # noqa: PLC0415
    from ownview.deploy.identities.invitations import require_new  # noqa: PLC0415
    from ownview.deploy.settings import CoordinatorSettings  # noqa: PLC0415
    from ownview.federation.checks.liars import defence, warning  # noqa: PLC0415
    from ownview.runs.experiment import Experiment  # noqa: PLC0415

    require_transport(transport)
    names = [one.strip() for one in places.split(",") if one.strip()]
    if not ServerFolder(folder).exists:  # else `create_server_folder` says so
        require_new(ServerFolder(folder), names)
    base = replace(Experiment(method=method), seed=seed, rounds=rounds)
    experiment = with_settings(base, method, list(dict.fromkeys(plugin or ())), with_privacy(sets, privacy))
    known = _KnownAtPlaces([one.strip() for one in user_columns.split(",") if one.strip()], ratings)
    agreement = _agreement(experiment, items, users, data_dir, known, order=order, hold_out=hold_out)
    if not any(one.startswith("robust=") for one in sets or ()):
        rule = defence(agreement.terms())
        if rule != experiment.federation.robust:
            experiment = replace(experiment, federation=replace(experiment.federation, robust=rule))
            agreement = _agreement(experiment, items, users, data_dir, known, order=order, hold_out=hold_out)
            _tell(f"robust={rule}: no client moves more than usual, as some may lie; --set robust=none to go without")
    listen = _LOOPBACK.get(host, "0.0.0.0")
    plan = Plan.of(
        {"transport": transport, "host": host, "port": port, "listen": listen, "rounds": experiment.rounds_needed}
    )
    quota = users_per_place or math.ceil(users / max(1, len(names)))
    conduct = CoordinatorSettings.of({"quorum": quorum, "least": least, "users_per_place": quota})
    server = create_server_folder(folder, agreement, plan, conduct)
    room = f"up to {users} users, {quota} of one place"
    _tell(f"{folder}: {agreement.label}, {len(agreement.items)} items, {room}, {plan.rounds} rounds")
    _tell(f"here, where port {plan.port} has to be reachable as {plan.host}, run")
    _tell(f"    ownview deploy server {server.path}")
    _tell(f"{server.certificates / 'ca.key'} stays here: who has it can make places of this deployment")
    if lies := warning(agreement.terms()):
        _tell(lies)
    _invite(server, names, DAYS)


@app.command()
def invite(
    folder: Folder,
    places: Annotated[list[str], typer.Argument(help="Names of the places.")],
    days: Annotated[float, typer.Option("--days", help="For which the invitation holds.", min=0.01, max=365)] = DAYS,
) -> None:
    """Write an invitation for each place: a file with which it can join, once."""
    from ownview.deploy.folders import ServerFolder  # noqa: PLC0415 - slow to import, and help does without
    from ownview.deploy.identities.invitations import require_new  # noqa: PLC0415

    server = ServerFolder(folder)
    server.require()
    require_new(server, places)
    _invite(server, places, days)


@app.command()
def join(
    invitation: Annotated[Path, typer.Argument(help="The invitation, a file of the server's.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the place, which is made.")],
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the server.", min=0)] = 10.0,
    floor: PrivacyFloor = None,
) -> None:
    """Make a place's folder: its key, made here, and its certificate, which the server signs."""
    from ownview.deploy.carriers import require_packages  # noqa: PLC0415 - slow to import, and help does without

    require_packages()
    from ownview.deploy.https.joining import join as joined  # noqa: PLC0415
    from ownview.deploy.places.floor import Floor  # noqa: PLC0415
    from ownview.deploy.places.home import Home  # noqa: PLC0415

    least = None if floor is None else Floor(floor)
    about = joined(invitation, folder, wait).membership()
    if least is not None:
        Home(folder).keep_floor(least)
    _tell(f"{about.name}: has joined {about.host}:{about.port}; its key was made here and stays here")
    _tell(f"put its users' ratings into {folder / 'ratings.csv'} (user,item,timestamp), and run")
    _tell(f"    ownview deploy client {folder}")


@app.command()
def revoke(folder: Folder, place: Annotated[str, typer.Argument(help="Name of the place.")]) -> None:
    """Refuse a place from now on, also on a server that is at work; its name may be invited again."""
    from ownview.deploy.folders import ServerFolder  # noqa: PLC0415 - slow to import, and help does without
    from ownview.deploy.identities.invitations import revoke as revoked  # noqa: PLC0415

    revoked(ServerFolder(folder), place)
    _tell(f"{place}: its key counts no more; `ownview deploy invite {folder} {place}` lets it join anew")


@app.command()
def server(
    folder: Folder,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="Go on to so many rounds in all: what users have rated since counts.", min=1),
    ] = None,
) -> None:
    """Serve until all rounds are done; started again, it goes on where it was."""
    from ownview.deploy.carriers import server_end  # noqa: PLC0415 - slow to import, and help does without
    from ownview.deploy.coordinator import Coordinator  # noqa: PLC0415
    from ownview.deploy.folders import ServerFolder  # noqa: PLC0415
    from ownview.deploy.running import at_work_on  # noqa: PLC0415

    found = ServerFolder(folder)
    plan, conduct = found.plan()
    agreement = found.agreement()
    if rounds is not None and rounds > plan.rounds:
        if agreement.terms().world.protection is not None:
            raise SettingError(f"--rounds {rounds}: the budget of {folder} is for {plan.rounds} rounds and no more")
        plan = replace(plan, rounds=rounds)
        found.keep_plan(plan, conduct, found.limits())
    with at_work_on(folder), server_end(found, plan, _tell) as transport:
        coordinator = Coordinator(agreement, transport, found.rounds, conduct, _tell, expected=found.keys.expected)
        gc.freeze()  # what was imported stays for good; so what connections leave behind is collected soon
        where = f"{plan.transport} at {plan.listen}:{plan.port}"
        _tell(f"{agreement.label}, {where}: {coordinator.done} of {plan.rounds} rounds are done")
        while coordinator.done < plan.rounds:
            one = coordinator.round(coordinator.done + 1)
            _tell(f"round {one.round}: {len(one.clients)} users of {', '.join(one.counted)}, {one.seconds:.1f} s")
        coordinator.share()
        if agreement.hold_out:
            _tell(", ".join(f"{name} {value:.4f}" for name, value in coordinator.measure().items()))
        _tell(f"all {plan.rounds} rounds are done")


@app.command()
def client(
    folder: Annotated[Path, typer.Argument(help="Folder of the place, with its users' ratings.csv.")],
    floor: PrivacyFloor = None,
) -> None:
    """Serve a place: train when the server asks, connect again when the line breaks; Ctrl-C ends it."""
    from ownview.deploy.carriers import place_end  # noqa: PLC0415 - slow to import
    from ownview.deploy.folders import PlaceFolder  # noqa: PLC0415
    from ownview.deploy.place import Place  # noqa: PLC0415
    from ownview.deploy.places.floor import Floor  # noqa: PLC0415
    from ownview.deploy.places.home import Home  # noqa: PLC0415
    from ownview.deploy.running import at_work_on, until_signalled  # noqa: PLC0415

    found = PlaceFolder(folder)
    about = found.membership()
    home, least = Home(folder), None if floor is None else Floor(floor)
    with at_work_on(home.state), until_signalled() as stop:
        place = Place(folder, _tell, least)
        _tell(f"{about.name}: {home.ratings}, {about.transport} at {about.host}:{about.port}")
        place_end(place, found, about, stop, _tell)
        _tell(f"{about.name}: stopped")


@app.command()
def status(folder: Either, as_json: options.AsJson = False) -> None:
    """Say how a server or a place stands: who is at work, rounds, users, messages."""
    from dataclasses import asdict  # noqa: PLC0415 - with the rest

    from ownview.deploy.status import PlaceStanding, standing  # noqa: PLC0415

    found = standing(folder)
    if as_json:
        options.print_json(asdict(found))
    elif isinstance(found, PlaceStanding):
        _tell_place(found)
    else:
        _tell_server(found)


@app.command()
def stop(folder: Either) -> None:
    """End the process that serves a server's or a place's folder, and wait until it has ended."""
    from ownview.deploy.running import stop_process_at  # noqa: PLC0415 - slow to import
    from ownview.deploy.status import standing, worked_on  # noqa: PLC0415

    standing(folder)  # refuses what is neither
    _tell(f"{folder}: process {stop_process_at(worked_on(folder))} has ended")


def _agreement(
    experiment: Experiment, items: str, users: int, data_dir: Path | None, known: _KnownAtPlaces, *, order: str,
    hold_out: bool,
) -> Agreement:  # fmt: skip
    from ownview.deploy.agreement import Agreement  # noqa: PLC0415 - slow to import
    from ownview.deploy.catalogue import read_catalogue  # noqa: PLC0415

    listed = read_catalogue(items, data_dir)
    return Agreement.of(
        experiment, listed.ids, listed.titles, users, hold_out=hold_out, order=order, about=listed.about,
        user_columns=known.user_columns, ratings=known.ratings,
    )  # fmt: skip


def _invite(server: ServerFolder, names: list[str], days: float) -> None:
    from ownview.deploy.identities.invitations import invite  # noqa: PLC0415 - slow to import

    for name in names:
        file = invite(server, name, days)
        _tell(f"{name}: carry {file} to its machine, keep it to itself, and run there, while the server is at work")
        _tell(f"    ownview deploy join {file.name} {name}")


def _tell_server(found: ServerStanding) -> None:
    _tell(f"{found.label}, {found.where}: {_at_work(found.process)}")
    _tell(f"{found.done[-1].round if found.done else 0} of {found.rounds} rounds are done")
    for place, users in found.users.items():
        last = max((one.round for one in found.done if place in one.counted), default=0)
        _tell(f"{place}: {users} users, last counted in round {last}" if users else f"{place}: has not come yet")


def _tell_place(found: PlaceStanding) -> None:
    _tell(f"{found.name}, {found.where}: {_at_work(found.process)}")
    _tell(f"{found.users} users, shared values of round {found.round}")
    _tell(f"{found.sent[0]} messages sent, {found.sent[1]:,} bytes (ownview client sent)")


def _at_work(process: int | None) -> str:
    return "no process is at work" if process is None else f"process {process} is at work"


def _tell(line: str) -> None:
    Console(highlight=False).print(one_line(line) if not line.startswith(" ") else line, soft_wrap=True, markup=False)
