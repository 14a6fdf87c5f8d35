"""`ownview client`: what a device does by itself: recommend at any time, list what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, print_json

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What a device does by itself: recommend (offline), sent (what has left), signer (its key for signed masks). "
    "`ownview deploy client` trains.",
)
Home = Annotated[Path, typer.Argument(help="Folder of the device, with its users' ratings.csv.")]


@app.command()
def recommend(
    home: Home,
    user: Annotated[str | None, typer.Option("--user", help="As in ratings.csv; not needed if there is one.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Recommend items to a user of this device, offline, by what the device has; nothing is sent."""
    from ownview.deploy.places.advice import advise  # noqa: PLC0415 - slow to import, and help does without

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
def signer(home: Home) -> None:
    """Print the name and key to be carried to every place's signers.txt, which signed masks need (masks=signed)."""
    from ownview.deploy.folders import PlaceFolder  # noqa: PLC0415 - slow to import, and help does without
    from ownview.deploy.places.home import Home as Files  # noqa: PLC0415

    typer.echo(f"{PlaceFolder(home).membership().name} {Files(home).signer().public.hex()}")


@app.command()
def sent(home: Home, as_json: AsJson = False) -> None:
    """List every message that has left this device, its bytes, and how much of a privacy budget is spent."""
    from ownview.deploy.places.sent_messages import sent_messages  # noqa: PLC0415 - slow to import, and help does without

    found = sent_messages(home)
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
        what = ", ".join(one.get("what", ())) or (f"{one['messages']:,} messages" if "messages" in one else "-")
        row = (one["at"], one["kind"], escape(what), str(one["round"]), str(one.get("users", 0)), f"{one['bytes']:,}")
        table.add_row(*row)
    console.print(table)
    console.print(f"{found.number} messages, {found.total:,} bytes in all", markup=False)
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
