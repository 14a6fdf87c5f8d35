"""`ownview audit`: what a protocol gives away on some data, before anything is trained."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape

from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, Columns, DataDir, ProtocolName
from ownview.data.datasets.catalog import load, min_interactions
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.findings import Finding
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.probes import STEPS, audit


def command(
    data: Annotated[str, typer.Argument(help="A dataset (`ownview data ls`) or a file of interactions.")] = "goodbooks",
    protocol: ProtocolName = "honest",
    columns: Columns = None,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of negatives that the leak probe counts.")] = 100,
    since: Annotated[
        str | None, typer.Option("--since", help="A day, as in 2024-11-01: what changed since then, instead of probes.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Probe a protocol on some data: leaks, repeated pairs, time, selection, and whether its ranking is sane."""
    source = load(data, data_dir=data_dir, columns=parse_columns(columns))
    if since is not None:
        from ownview.evaluation.drift import drift, moment_of  # noqa: PLC0415 - slow to import, and few ask

        _show(drift(source, moment_of(since)), {"data": source.name, "since": since}, [], as_json=as_json)
        return
    asked = protocol_by_name(protocol)
    split = asked.prepare(source, min_interactions(data))
    with progress("auditing, probes", STEPS, quiet=as_json) as advance:
        findings = audit(split, asked, rounds=rounds, done=advance)
    _show(findings, {"data": split.data.name, "protocol": asked.name}, list(split.notes), as_json=as_json)


def _show(findings: list[Finding], about: dict[str, str], notes: list[str], *, as_json: bool) -> None:
    if as_json:
        found = {**about, "notes": notes, "findings": [finding.to_dict() for finding in findings]}
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console(highlight=False)
    (_, data), (what, value) = about.items()
    console.print(f"[bold]{escape(data)}[/], {what} [bold]{escape(value)}[/]")
    for finding in findings:
        mark = "[red]![/]" if finding.fires else "[green]ok[/]"
        console.print(f"{mark:<2} {finding.probe}: {escape(finding.sentence)}")
    for note in notes:
        console.print(f"note: {escape(note)}")
