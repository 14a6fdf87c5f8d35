"""`ownview privacy`: the ledger of releases under budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, Columns, DataDir, print_json
from ownview.data.datasets.catalog import load, min_interactions
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.named_protocols import HONEST, on_everything
from ownview.releases.entries import Entry
from ownview.releases.release_ledger import Ledger, Standing
from ownview.runs.charging import world_of

app = typer.Typer(help="What was released under budgets, of how many people, and what is left; totals.")


@app.callback(invoke_without_command=True)
def listing(context: typer.Context, as_json: AsJson = False) -> None:
    """List all releases under budgets on this machine, and what is left for their people."""
    if context.invoked_subcommand is not None:
        return
    ledger = Ledger()
    entries, standings = ledger.entries(), ledger.standings()
    if as_json:
        print_json(
            {
                "ledger": str(ledger.file),
                "releases": [_plain(entry) for entry in entries],
                "people": [_standing(one) for one in standings],
            }
        )
        return
    console = Console(highlight=False)
    if not entries:
        console.print(f"nothing was released under a budget; {ledger.file} would say so", markup=False, soft_wrap=True)
    for entry in entries:
        said = f"released {entry.title}" if entry.mechanism else f"total {entry.total:g} set on {entry.when[:10]}"
        where = "" if entry.mechanism else f" for {entry.data}"
        console.print(f"{said}{where}, {_people(entry.number)}", markup=False, soft_wrap=True)
    for one in standings:
        console.print(_sentence(one), markup=False, soft_wrap=True)


@app.command("total")
def set_total(
    data: Annotated[str, typer.Argument(help="A dataset or a file of interactions: its people.")],
    epsilon: Annotated[float, typer.Argument(help="What all releases of one person together may reach.")],
    columns: Columns = None,
    data_dir: DataDir = None,
) -> None:
    """Set the total of all people in some data, from now on."""
    if not 0 < epsilon < float("inf"):
        raise SettingError(f"total {epsilon:g}: expected an epsilon above 0")
    read = load(data, data_dir=data_dir, columns=parse_columns(columns))
    taking_part = on_everything(HONEST).prepare(read, min_interactions(data)).data
    name = data if world_of(data) == data or not Path(data).exists() else str(Path(data).resolve())
    ledger = Ledger()
    ledger.set_total(name, world_of(data), taking_part.users, epsilon, taking_part.items)
    for one in ledger.standings()[-1:]:
        Console(highlight=False).print(_sentence(one), markup=False, soft_wrap=True)


def _sentence(one: Standing) -> str:
    left = max(0.0, one.total - one.spent.epsilon)
    spent = f"epsilon {one.spent.epsilon:.4g} of {one.total:g} is spent"
    by = f" by {counted(len(one.by), 'release')} ({one.spent.how})" if one.by else ""
    return f"{one.data}: of one person among {_people(one.number)} {spent}{by}, {left:.4g} is left"


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


def _plain(entry: Entry) -> dict[str, Any]:
    """Without the names of files of people and items, which stay private."""
    return {name: value for name, value in entry.plain().items() if name not in ("people", "items")}


def _standing(one: Standing) -> dict[str, Any]:
    return {
        "data": one.data,
        "people": one.number,
        "spent": one.spent.epsilon,
        "delta": one.spent.delta,
        "how": one.spent.how,
        "releases": [entry.id for entry in one.by],
        "total": one.total,
        "left": max(0.0, one.total - one.spent.epsilon),
    }
