"""`ownview audit`: what a protocol gives away on some data, before anything is trained."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape

from ownview.cli.options import AsJson, Columns, DataDir, ProtocolName
from ownview.cli.progress import progress
from ownview.cli.terminal import Console
from ownview.data.catalog import load, min_interactions
from ownview.data.columns import parse_columns
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.probes import STEPS, audit


def command(
    data: Annotated[str, typer.Argument(help="A dataset (`ownview data ls`) or a file of interactions.")] = "goodbooks",
    protocol: ProtocolName = "honest",
    columns: Columns = None,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of negatives that the leak probe counts.")] = 100,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Probe a protocol on some data: leaks, repeated pairs, time, selection, and whether its ranking is sane."""
    asked = protocol_by_name(protocol)
    split = asked.prepare(load(data, data_dir=data_dir, columns=parse_columns(columns)), min_interactions(data))
    with progress("auditing, probes", STEPS, quiet=as_json) as advance:
        findings = audit(split, asked, rounds=rounds, done=advance)
    if as_json:
        found = {"data": split.data.name, "protocol": asked.name, "notes": list(split.notes)}
        typer.echo(json.dumps({**found, "findings": [finding.to_dict() for finding in findings]}, indent=2))
        return
    console = Console(highlight=False)
    console.print(f"[bold]{escape(split.data.name)}[/], protocol [bold]{escape(asked.name)}[/]")
    for finding in findings:
        mark = "[red]![/]" if finding.fires else "[green]ok[/]"
        console.print(f"{mark:<2} {finding.probe}: {escape(finding.sentence)}")
    for note in split.notes:
        console.print(f"note: {escape(note)}")
