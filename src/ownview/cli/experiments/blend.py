"""`ownview blend`: finished runs become one, with weights found on validation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.cli.display.progress import progress
from ownview.cli.experiments.run import show
from ownview.cli.options import AsJson, DataDir, Memory, new_folder
from ownview.cli.settings import folder_of
from ownview.cli.trusting import Trust
from ownview.runs.blended_runs import blend_of
from ownview.runs.run import run


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs on the same data and protocol.")],
    own: Annotated[
        float,
        typer.Option("--own", help="Weight of own wins beside everybody's; 0: the same for all.", min=0),
    ] = 0.0,
    like: Annotated[
        Path | None,
        typer.Option("--like", help="A measured blend of the same methods: its weights, for models of `ownview fit`."),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the run; must not exist.")] = None,
    memory: Memory = "auto",
    data_dir: DataDir = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Blend finished runs at home: standardised scores added up, weights by validation wins summed over clients."""
    experiment = blend_of(runs, own, like)
    folder = out or new_folder(folder_of(experiment))
    with progress("blending, rounds", 1, quiet=as_json) as advance:
        finished = run(
            experiment, out=folder, memory=memory, data_dir=data_dir, on_round=lambda number, metrics: advance("")
        )
    show(finished, as_json=as_json)
