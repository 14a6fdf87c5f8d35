"""`ownview client`: the life of a device: train when asked, recommend at any time, tell what was sent."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ownview.base.errors import SettingError
from ownview.base.shown import one_line
from ownview.cli.options import AsJson, print_json
from ownview.cli.terminal import Console

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="The life of a device: run (train when asked), recommend (offline), sent (what has left).",
)
Home = Annotated[Path, typer.Argument(help="Folder of the device, with its users' ratings.csv.")]


@app.command()
def run(
    home: Home,
    server: Annotated[str, typer.Option("--server", help="Of the coordinator: HOST:PORT.")],
    keys: Annotated[Path, typer.Option("--keys", help="Folder with ca.crt, NAME.crt and NAME.key.")],
    name: Annotated[str, typer.Option("--name", help="Of the device, as its key was enrolled.")],
) -> None:
    """Stay, train when the coordinator asks, and connect again whenever the line breaks; Ctrl-C ends it."""
    from ownview.deploy.home import Home as Folder  # noqa: PLC0415 - slow to import, and help does without
    from ownview.deploy.place import Place  # noqa: PLC0415
    from ownview.deploy.tls import attend  # noqa: PLC0415
    from ownview.runs.lock import sole_worker  # noqa: PLC0415

    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        raise SettingError(f"--server {server!r}: expected HOST:PORT, such as 192.0.2.7:9440")
    with sole_worker(Folder(home).state, busy="another client is at work there; stop it first"):
        attend(Place(home, _say), (host, int(port)), keys, name, threading.Event(), _say)


@app.command()
def recommend(
    home: Home,
    user: Annotated[str | None, typer.Option("--user", help="As in ratings.csv; not needed if there is one.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Recommend items to a user of this device, offline, by what the device has; nothing is sent."""
    from ownview.deploy.advice import advise  # noqa: PLC0415 - slow to import, and help does without

    found = advise(home, user, k)
    if as_json:
        print_json({**found._asdict(), "items": [one._asdict() for one in found.items]})
        return
    console = Console(highlight=False)
    how = "a client that took part" if found.taken_part else "ratings alone: this client has not taken part yet"
    console.print(
        f"{found.model} for {found.user}, shared values of round {found.round}, {how}", soft_wrap=True, markup=False
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("item")
    table.add_column("score", justify="right")
    for place, one in enumerate(found.items, start=1):
        table.add_row(str(place), escape(one.title), f"{one.score:.2f}")
    console.print(table)
    if not found.items:
        console.print("nothing is left to recommend", markup=False)


@app.command()
def sent(home: Home, as_json: AsJson = False) -> None:
    """Tell every message that has left this device, its bytes, and how much of a privacy budget is spent."""
    from ownview.deploy.told import told  # noqa: PLC0415 - slow to import, and help does without

    found = told(home)
    if as_json:
        budget = None if found.budget is None else dict(zip(("epsilon", "delta"), found.budget, strict=True))
        print_json({"messages": list(found.messages), "bytes": found.total, "budget": budget, "spent": found.spent})
        return
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in ("when", "answer to", "what"):
        table.add_column(column)
    for column in ("round", "users", "bytes"):
        table.add_column(column, justify="right")
    for one in found.messages:
        what = ", ".join(one.get("what", ())) or "-"
        row = (one["at"], one["kind"], escape(what), str(one["round"]), str(one.get("users", 0)), f"{one['bytes']:,}")
        table.add_row(*row)
    console.print(table)
    console.print(f"{len(found.messages)} messages, {found.total:,} bytes in all", markup=False)
    if found.budget is None:
        console.print("nothing is accounted for: no privacy budget was agreed on", markup=False)
        return
    epsilon, delta = found.budget
    for user, spent_so_far in found.spent.items():
        console.print(
            f"{user}: epsilon {spent_so_far:.3g} of {epsilon:g} is spent (delta {delta:g})",
            markup=False,
            soft_wrap=True,
        )


def _say(line: str) -> None:
    typer.echo(one_line(line), err=True)
