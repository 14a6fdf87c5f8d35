"""`ownview sums`: the sums that a model is solved from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ownview.base.display.amounts import counted, readable
from ownview.cli.devices import share_server, shares
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, Sets, print_json

if TYPE_CHECKING:
    from ownview.sums.living import Changed

app = typer.Typer(
    help="The sums that a model is solved from: show, solve again, merge, add up once more; add up browsers' messages."
)

for word in (shares.key, shares.agree, shares.total, shares.weights):
    app.command()(word)
app.command("serve")(share_server.command)

Model = Annotated[Path, typer.Argument(help="Folder of a model (`ownview fit`).")]


@app.command()
def show(model: Model, as_json: AsJson = False) -> None:
    """What is agreed, who counts, and how large the sums are; the store is made where there is none yet."""
    from ownview.sums.living import SUMS, kept  # noqa: PLC0415 - slow to import, and help does without
    from ownview.sums.store import Store  # noqa: PLC0415

    if not (model / SUMS).is_dir():
        with kept(model):
            pass
    with Store.reading(model / SUMS) as store:
        lines, state, agreed = store.journal.contributions(), store.journal.state(), store.agreement.clients()
        items = len(store.journal.items())
        files = [path for path in (model / SUMS).rglob("*") if path.is_file()]
        summary = {
            "method": agreed["method"],
            "settings": agreed["settings"],
            "agreement": store.agreement.digest(),
            "contributions": sum(not line.taken_out for line in lines),
            "taken_out": sum(line.taken_out for line in lines),
            "budget": max((line.budget for line in lines if not line.taken_out), default=0.0),
            "items": items,
            "changes": state.sequence,
            "bytes": sum(512 * path.stat().st_blocks for path in files),
        }
    if as_json:
        print_json(summary)
        return
    out = Console(highlight=False)
    fixed = ", ".join(f"{name}={value}" for name, value in agreed["settings"].items()) or "no settings"
    out.print(f"{summary['method']} ({fixed}), agreement {summary['agreement'][:16]}", soft_wrap=True, markup=False)
    people = f"{counted(summary['contributions'], 'contribution')} count, {summary['taken_out']:,} were taken out"
    out.print(f"  {people}; {counted(items, 'item')}; {readable(summary['bytes'])} on the disk", markup=False)


@app.command()
def solve(model: Model, sets: Sets = None, as_json: AsJson = False) -> None:
    """Solve the same sums again with other settings of the server: `--set regularization=300`; no data is read."""
    from ownview.cli.settings import with_settings  # noqa: PLC0415
    from ownview.runs.run import open_run  # noqa: PLC0415
    from ownview.sums.living import solve_model  # noqa: PLC0415

    before = open_run(model).experiment
    after = with_settings(before, before.method, [name for name, _ in before.plugins], sets or [])
    own = {name: value for name, value in after.settings.items() if before.settings.get(name) != value}
    _tell(solve_model(model, own), as_json=as_json)


@app.command()
def merge(
    model: Model,
    other: Annotated[Path, typer.Argument(help="Folder of a model of the same agreement; it is not changed.")],
    as_json: AsJson = False,
) -> None:
    """Add another model's sums and people; a person in both counts once, with the rows of both."""
    from ownview.sums.living import merge_model  # noqa: PLC0415

    _tell(merge_model(model, other), as_json=as_json)


@app.command()
def rebuild(model: Model, as_json: AsJson = False) -> None:
    """Add everybody up once more from their histories: on a machine that rounds otherwise than the last."""
    from ownview.sums.living import rebuild_model  # noqa: PLC0415

    _tell(rebuild_model(model), as_json=as_json)


def _tell(changed: Changed, *, as_json: bool) -> None:
    if as_json:
        print_json(changed.plain())
        return
    out = Console(highlight=False)
    out.print(f"{changed.version}: {changed.what}", soft_wrap=True, markup=False)
    out.print(f"  {changed.how}; {changed.seconds:.2f} s in all", soft_wrap=True, markup=False)
