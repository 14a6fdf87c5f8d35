"""`ownview recommend`: what a finished run would show one user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ownview.base.shown import shown_json
from ownview.cli.options import AsJson, DataDir
from ownview.cli.terminal import Console
from ownview.cli.trusting import Trust
from ownview.runs.run import open_run


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    user: Annotated[str, typer.Option("--user", help="A user id, as the data has it.")],
    k: Annotated[int, typer.Option("-k", help="How many items.", min=1)] = 10,
    data_dir: DataDir = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to one user, with titles where there are any."""
    finished = open_run(run)
    found = finished.recommend(user, k, data_dir)
    if as_json:
        items: list[dict[str, Any]] = [{**one._asdict(), "item": _plain(one.item)} for one in found]
        about = {"run": str(run), "protocol": finished.experiment.protocol.name, "user": user}
        typer.echo(shown_json(json.dumps({**about, "recommendations": items}, indent=2, ensure_ascii=False)))
        return
    experiment = finished.experiment
    table = Table(
        title=escape(
            f"{experiment.label()} for user {user} of {experiment.data_label()} (protocol {experiment.protocol.name})"
        ),
        title_justify="left", box=None, pad_edge=False,
    )  # fmt: skip
    table.add_column("", justify="right")
    table.add_column("item")
    table.add_column("score", justify="right")
    for place, one in enumerate(found, start=1):
        mark = "  [green](held out: this user did choose it)[/]" if one.held_out else ""
        table.add_row(str(place), f"{escape(one.title)}{mark}", f"{one.score:.2f}")
    Console(highlight=False).print(table)


def _plain(item: Any) -> Any:
    return item.item() if hasattr(item, "item") else item
