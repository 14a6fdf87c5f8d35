"""`ownview compare`: several methods, seeds and protocols in one table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ownview.base.errors import OutputError, SettingError
from ownview.cli.options import (
    AsJson,
    Columns,
    Data,
    DataDir,
    Device,
    EngineName,
    Memory,
    Privacy,
    Rounds,
    belongs,
    new_folder,
    read_sets,
    with_privacy,
)
from ownview.cli.progress import progress
from ownview.data.columns import parse_columns
from ownview.evaluation.comparison import LEVEL, SIGNS, Cell, Mark
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.protocol import protocol as protocol_by_name
from ownview.federation.options import FederationOptions
from ownview.runs.audits import findings_of
from ownview.runs.batch import Task, run_all
from ownview.runs.experiment import Experiment
from ownview.runs.table import Comparison

_SIGNS = {**SIGNS, Mark.WORSE: " ", Mark.UNPAIRED: "?"}
_LEGEND = {
    Mark.BEST: "best of its column",
    Mark.LEVEL: (
        "cannot be told apart from the best: paired over the same users, p, corrected for the choice of the best and "
        f"for all columns, is {LEVEL} or more, or ranks and mean disagree"
    ),
    Mark.UNPAIRED: "not compared with the best",
}


def command(
    methods: Annotated[list[str], typer.Argument(help="Methods (`ownview ls methods`), METHOD+PLUGIN, or .py files.")],
    data: Data = "goodbooks",
    columns: Columns = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", help="honest (if not given), paper, or a .toml file; may be repeated."),
    ] = None,
    rounds: Rounds = 100,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each method, with seeds 0, 1, ...", min=1)] = 1,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, for every method that has the setting; may be repeated."),
    ] = None,
    privacy: Privacy = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for all runs.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in the folder --out names.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs side by side.", min=1)] = 1,
    engine: EngineName = "vector",
    device: Device = "auto",
    memory: Memory = "auto",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Train several methods on the same data and put them side by side."""
    if resume and out is None:
        raise SettingError("--resume goes on in the folder that --out names; give --out DIR")
    if out is not None and out.exists() and not resume:
        raise OutputError(f"{out}: already exists; choose another --out, or go on with it by adding --resume")
    folder = out or new_folder(f"compare-{Path(data).stem}")
    base = Experiment(
        method="", data=data, columns=parse_columns(columns) or {}, rounds=rounds, engine=engine, device=device
    )
    protocols = list(dict.fromkeys(protocol or ["honest"]))
    tasks = _tasks(base, methods, protocols, seeds, with_privacy(sets, privacy), folder)
    total = sum(experiment.rounds_needed for experiment, _ in tasks)
    with progress(f"{len(tasks)} runs", total, quiet=as_json) as advance:
        runs = run_all(
            tasks, jobs=jobs, memory=memory, data_dir=data_dir, on_round=lambda run, number, metrics: advance(run.name)
        )
    comparison = Comparison.of(runs, findings_of(runs, probe=True, data_dir=data_dir))
    if as_json:
        typer.echo(json.dumps({**comparison.to_dict(), "folder": str(folder)}, indent=2))
        return
    _show(comparison, rounds, seeds, folder)


def _tasks(
    base: Experiment, methods: list[str], protocols: list[str], seeds: int, sets: list[str], folder: Path
) -> list[Task]:
    """Every method under every protocol with every seed, and the folder each goes to."""
    unused = set(sets)
    tasks: list[Task] = []
    for asked in (protocol_by_name(name) for name in protocols):
        for spec in dict.fromkeys(methods):
            method, *plugins = [spec] if spec.endswith(".py") else spec.split("+")
            mine = [pair for pair in sets if belongs(pair, method, plugins)]
            unused -= set(mine)
            settings, of_plugins, federation = read_sets(method, plugins, mine)
            experiment = replace(
                base, method=method, protocol=asked, settings=settings, plugins=tuple(of_plugins),
                federation=FederationOptions.of(federation),
            )  # fmt: skip
            experiment.model()
            name = f"{Path(method).stem if not plugins else spec}-{asked.name}"
            tasks += [(replace(experiment, seed=seed), folder / f"{name}-seed{seed}") for seed in range(seeds)]
    if unused:
        raise SettingError(f"--set {min(unused)}: no method of this comparison has that setting")
    _require_different_folders(tasks)
    return tasks


def _require_different_folders(tasks: list[Task]) -> None:
    folders = [folder for _, folder in tasks]
    for folder in folders:
        if folders.count(folder) > 1:
            raise SettingError(f"two runs would go to {folder}; rename one of the method or protocol files")


def _show(comparison: Comparison, rounds: int, seeds: int, folder: Path) -> None:
    console = Console(highlight=False)
    for protocol in comparison.protocols:
        for finding in comparison.warnings(protocol):
            console.print(f"[red]![/] {escape(protocol)}, {finding.probe}: {escape(finding.sentence)}")
    table = Table(
        title=f"{comparison.data}: test, {rounds} rounds, {seeds} seed{'s' if seeds > 1 else ''}", title_justify="left"
    )
    table.add_column("method")
    for protocol in comparison.protocols:
        warned = " [red]![/]" if comparison.warnings(protocol) else ""
        for metric in HEADLINE:
            table.add_column(
                f"{escape(protocol)}{warned}\n{metric}\n[dim]of {comparison.ranked[protocol]}", justify="right"
            )
    for method in comparison.methods:
        cells = [comparison.cells.get((method, p, m)) for p in comparison.protocols for m in HEADLINE]
        table.add_row(method, *(_text(cell) for cell in cells))
    console.print(table)
    spread = "standard deviation over seeds" if seeds > 1 else "95 % interval over users"
    console.print(f"In brackets: {spread}. Round chosen on: {_chosen(comparison)}.")
    present = {cell.mark for cell in comparison.cells.values()}
    for mark, meaning in _LEGEND.items():
        if mark in present and len(comparison.methods) > 1:
            console.print(f"{_SIGNS[mark]} {meaning}.")
    for note in comparison.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"Every run is in {folder}", soft_wrap=True, markup=False)


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    sign = _SIGNS[cell.mark]
    if cell.spread is not None:
        return f"{cell.mean:.3f}{sign} [dim](± {cell.spread:.3f})[/]"
    return f"{cell.mean:.3f}{sign} [dim]({cell.low:.3f}-{cell.high:.3f})[/]"


def _chosen(comparison: Comparison) -> str:
    return ", ".join(f"{stage} ({protocol})" for protocol, stage in comparison.chosen_on.items())
