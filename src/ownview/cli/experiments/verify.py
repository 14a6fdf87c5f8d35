"""`ownview verify`: is a run what it says, and does it come out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ownview.base.errors import OwnviewError
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, DataDir, Memory, print_json
from ownview.cli.trusting import Trust
from ownview.runs.verifying import DIFFERS, HOLDS, verify

_MARKS = {HOLDS: "[green]ok[/]", DIFFERS: "[red]![/]"}


class DiffersError(OwnviewError):
    """A run is not what it says."""

    exit_code = 1


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    again: Annotated[bool, typer.Option("--again", help="Carry it out once more and compare every figure.")] = False,
    memory: Memory = "auto",
    data_dir: DataDir = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Verify a run: files, versions, source, data and figures; with --again, whether it comes out again."""
    found = verify(run, again=again, data_dir=data_dir, memory=memory)
    if as_json:
        print_json({"run": str(run), "checks": [one.to_dict() for one in found]})
    else:
        console = Console(highlight=False)
        for one in found:
            console.print(f"{_MARKS.get(one.found, '?'):<2} {one.what}: {escape(one.sentence)}", soft_wrap=True)
    # Other versions are printed, and are no fault of the run.
    if wrong := [one.what for one in found if one.found == DIFFERS and one.what != "versions"]:
        raise DiffersError(f"{run}: not what it says: {', '.join(wrong)}")
