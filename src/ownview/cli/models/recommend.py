"""`ownview recommend`: what a finished model would show its users, or a new person."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ownview.base.display.amounts import counted
from ownview.base.display.shown import one_line, shown, shown_json
from ownview.base.errors import SettingError
from ownview.cli.display.patience import telling
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, DataDir, NewItems, print_json
from ownview.cli.trusting import Trust
from ownview.data.persons import Newcomer
from ownview.runs.recommending import Recommendation
from ownview.runs.run import Run, open_run
from ownview.runs.summaries.frames import require_ending, write_frame


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    user: Annotated[str | None, typer.Option("--user", help="A user id, as the data has it.")] = None,
    all_users: Annotated[bool, typer.Option("--all", help="Lists of all users, into the file that -o names.")] = False,
    history: Annotated[
        str | None, typer.Option("--history", help="A new person: titles or ids, oldest first, parted by semicolons.")
    ] = None,
    new_user: Annotated[
        Path | None,
        typer.Option("--new-user", help="A new person: a file with a column item or title, and maybe timestamp."),
    ] = None,
    new_items: NewItems = None,
    k: Annotated[int, typer.Option("-k", help="How many items.", min=1)] = 10,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File for --all: .parquet or .csv.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    data_dir: DataDir = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to one user, to everybody, or to a new person, with titles where there are any."""
    asked = {"--user": user is not None, "--all": all_users, "--history": history is not None, "--new-user": new_user}
    given = [name for name, there in asked.items() if there]
    if len(given) != 1:
        found = " and ".join(given) or "neither"
        raise SettingError(f"found {found}; expected one of --user ID, --all, --history TITLES, --new-user FILE")
    if (out is not None) != all_users:
        raise SettingError(
            "-o: goes with --all" if out else "--all: give a file for the lists, such as -o lists.parquet"
        )
    if out is not None:
        _write_all(run, out, k, data_dir, new_items, force=force, as_json=as_json)
        return
    finished = open_run(run)
    said = new_user or history
    person = None if said is None else finished.newcomer(said, data_dir)
    found_items = finished.recommend(user if person is None else person, k, data_dir, new_items)
    if as_json:
        _print_json(run, finished, user, person, found_items)
        return
    console = Console(highlight=False)
    if person is not None:
        _show_understood(console, person)
    console.print(_title(finished, "a new person" if person else f"user {user}"), soft_wrap=True, markup=False)
    console.print(_table(found_items))
    if not found_items:
        console.print("nothing is left to recommend", markup=False)


def _write_all(
    run: Path, out: Path, k: int, data_dir: Path | None, new_items: Path | None, *, force: bool, as_json: bool
) -> None:
    require_ending(out)
    if out.exists() and not force:
        raise SettingError(f"{out}: already exists; choose another -o, or overwrite it with --force")
    finished = open_run(run)
    with telling(lambda: shown(f"{run}: reading")):
        users = finished.loaded(data_dir).num_users
    with progress("lists", users, quiet=as_json) as advance:
        frame = finished.recommend_many(None, k, data_dir, new_items, on_users=partial(advance, "users"))
    write_frame(frame, out)
    users = frame["user"].n_unique()  # who has nothing left to be recommended has no list
    if as_json:
        print_json({"run": str(run), "file": str(out), "users": users, "rows": len(frame), "columns": frame.columns})
    else:
        typer.echo(
            one_line(
                f"{out}: {counted(len(frame), 'row')}, lists of up to {counted(k, 'item')} for {counted(users, 'user')}"
            )
        )


def _print_json(
    run: Path, finished: Run, user: str | None, person: Newcomer | None, found: list[Recommendation]
) -> None:
    about: dict[str, Any] = {"run": str(run), "protocol": finished.experiment.protocol.name, "user": user}
    if person is not None:
        about["history"] = [{"given": one.given, "title": one.title} for one in person.history]
    items = [one._asdict() for one in found]
    typer.echo(shown_json(json.dumps({**about, "recommendations": items}, indent=2, ensure_ascii=False)))


def _show_understood(console: Console, person: Newcomer) -> None:
    order = "in the order of their times" if person.times is not None else "oldest first"
    console.print(f"from {counted(len(person.history), 'item')}, {order}:", markup=False)
    for one in person.history:
        meant = "" if one.title == one.given.strip() else f"  ({one.given.strip()})"
        console.print(f"  {one.title}{meant}", markup=False, soft_wrap=True)


def _title(finished: Run, whom: str) -> str:
    experiment = finished.experiment
    kind = f"protocol {experiment.protocol.name}" if finished.measured else "trained on everything"
    return f"{experiment.label()} for {whom} of {experiment.data_label()} ({kind})"


def _table(found: list[Recommendation]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("item")
    table.add_column("score", justify="right")
    for place, one in enumerate(found, start=1):
        mark = "  [green](held out: this user did choose it)[/]" if one.held_out else ""
        mark += "  [cyan](new)[/]" if one.new else ""
        table.add_row(str(place), f"{escape(one.title)}{mark}", f"{one.score:.2f}")
    return table
