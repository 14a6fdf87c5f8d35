"""The table of one dataset on a terminal, for comparisons and suites alike."""

from __future__ import annotations

from collections.abc import Mapping

from rich.markup import escape
from rich.table import Column, Table

from ownview.cli.display.terminal import Console
from ownview.evaluation.comparison import Cell
from ownview.evaluation.findings import Finding
from ownview.runs.table import Comparison, grouped


def figures(found: Comparison, title: str, *, over_seeds: bool = False) -> Table:
    """Fits 100 columns with two protocols: an interval over users, or the spread over seeds, stands under its mean."""
    warned = {protocol: " [red]![/]" if found.warnings(protocol) else "" for protocol in found.ranked}
    heads = [
        f"{escape(protocol)}{warned[protocol]}\n{metric}\n[dim]of {found.ranked[protocol]}[/]"
        for protocol, metric in found.columns
    ]
    table = Table(
        Column("method", overflow="fold"), *(Column(head, justify="right", no_wrap=True) for head in heads),
        title=escape(title), title_justify="left", title_style="bold", box=None,
    )  # fmt: skip
    for method in found.methods:
        cells = ((column[0], found.cells.get((method, *column))) for column in found.columns)
        texts = (found.missing(method, name) if cell is None else _text(cell, over_seeds) for name, cell in cells)
        table.add_row(escape(found.label(method)), *texts)
    return table


def warn(console: Console, found: Comparison, lying: Mapping[str, Finding] | None = None) -> None:
    """What must be known to read the figures, and by method, what one client that lies reaches."""
    for protocol in found.ranked:
        for finding in found.warnings(protocol):
            console.print(f"[red]![/] {escape(protocol)}, {finding.probe}: {escape(finding.sentence)}")
    attacks = [*found.exposed.items(), *(lying or {}).items()]
    for sentence, methods in grouped((one.sentence, method) for method, one in attacks if one.fires).items():
        console.print(f"[red]![/] {escape(', '.join(methods))}: {escape(sentence)}")


def _text(cell: Cell, over_seeds: bool) -> str:
    sure = f"± {cell.spread:.3f}" if over_seeds and cell.spread is not None else f"{cell.low:.3f}-{cell.high:.3f}"
    return f"{cell.mean:.3f} {cell.signs}".rstrip() + f"\n[dim]({sure})[/]"
