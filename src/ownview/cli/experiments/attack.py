"""`ownview attack`: what an honest but curious server learns of its clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from ownview.attacks.dishonest.audit import DishonestSettings
from ownview.attacks.dishonest.crew import GOALS, MEANS
from ownview.attacks.dishonest.published.catalogue import PUBLISHED
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import AttackSettings
from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError
from ownview.base.files import write_json
from ownview.cli import options
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import on_command_line, print_json, with_privacy
from ownview.cli.settings import with_settings
from ownview.cli.trusting import Trust, names_a_file
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.findings.attacking import Attacked, attack_experiment, infiltrate_experiment
from ownview.runs.run import experiment_of

_RUNS_OWN = {"data", "columns", "protocol", "plugin", "engine"}
_COLUMNS = {"precision": "precision", "recall": "recall", "at k": "precision at k", "AUC": "AUC"}


def command(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="METHOD|RUN",
            callback=names_a_file,
            help="A method (`ownview ls methods`), a .py file, or a run's folder, whose experiment is watched.",
        ),
    ],
    data: options.Data = "goodbooks",
    columns: options.Columns = None,
    protocol: options.ProtocolName = "honest",
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds that the server watches.", min=1)] = 3,
    clients: Annotated[int, typer.Option("--clients", help="Clients whose messages it notes.", min=1)] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Of the method's run and of the draw of clients.", min=0)] = 0,
    privacy: options.Privacy = None,
    sets: options.Sets = None,
    plugin: options.Plugins = None,
    audit_seeds: Annotated[int, typer.Option("--audit-seeds", help="Of the canary audit; 0 for none.", min=0)] = 5,
    dishonest: Annotated[
        bool, typer.Option("--dishonest", help="Instead, what lying clients do to the lists of honest ones.")
    ] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="With --dishonest: a server that adds up whatever is finite.")
    ] = False,
    goal: Annotated[
        list[str] | None,
        typer.Option("--goal", help=f"With --dishonest, may repeat: {', '.join(GOALS)}. Without it all."),
    ] = None,
    means: Annotated[
        list[str] | None,
        typer.Option(
            "--means",
            help=f"With --dishonest, may repeat: {', '.join(MEANS)} (all three without it), or of the literature "
            f"{', '.join(PUBLISHED)}.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A JSON file for everything found.")] = None,
    engine: options.EngineName = "vector",
    device: options.Device = "auto",
    memory: options.Memory = "auto",
    data_dir: options.DataDir = None,
    trust: Trust = False,
    as_json: options.AsJson = False,
) -> None:
    """Attack a method as its server could: read users' items from uploads and sums, and audit what noise promises.

    With --dishonest as its clients could: push an item into lists, or out of them, or spoil all lists.
    """
    for name, given_here in (("unchecked", unchecked), ("goal", goal), ("means", means)):
        if given_here and not dishonest:
            raise SettingError(f"--{name}: is for --dishonest")
    tried = DishonestSettings(rounds, goal or GOALS, means or MEANS, seed=seed, checked=not unchecked)
    settings = AttackSettings(rounds, clients, seed, audit_seeds)
    pairs = with_privacy(sets, privacy)
    if (Path(target) / "experiment.toml").is_file() or Path(target).is_dir():
        given = {name for name in _RUNS_OWN if on_command_line(context, name)}
        if given:
            raise SettingError(f"--{min(given)}: not with a run's folder, which has its own")
        base = experiment_of(RunFolder.open(Path(target)))
        experiment = with_settings(base, base.method, [name for name, _ in base.plugins], pairs)
    else:
        base = Experiment(
            method=target, data=data, columns=parse_columns(columns) or {}, rounds=rounds, seed=seed, engine=engine,
            protocol=protocol_by_name(protocol),
        )  # fmt: skip
        experiment = with_settings(base, target, list(dict.fromkeys(plugin or ())), pairs)
    experiment = replace(experiment, device=device)
    with progress(f"attack on {experiment.label()}", 3, quiet=as_json) as advance:
        if dishonest:
            lies = replace(tried, rounds=experiment.rounds_of(experiment.model()))
            found = infiltrate_experiment(experiment, lies, memory=memory, data_dir=data_dir, on_step=advance)
        else:
            found = attack_experiment(experiment, settings, memory=memory, data_dir=data_dir, on_step=advance)
    if out is not None:
        write_json(out, found.to_dict())
    if as_json:
        print_json(found.to_dict())
        return
    _show(found, out)


def _show(found: Attacked, out: Path | None) -> None:
    console = Console(highlight=False)
    one = found.experiment
    console.print(
        f"[bold]{escape(one.label())}[/] on {escape(one.data_label())}, protocol {escape(one.protocol.name)}, "
        f"seed {one.seed}, privacy [bold]{escape(one.federation.privacy)}[/]: "
        f"{counted(found.settings.rounds, 'round')} watched"
    )
    table = Table(Column("attack"), Column("sees"), *(Column(name, justify="right") for name in _COLUMNS), box=None)
    for finding in found.findings:
        if "AUC" in finding.values:
            table.add_row(finding.attack, finding.sees, *(_cell(finding, name) for name in _COLUMNS.values()))
    if table.row_count:
        console.print(table)
        console.print("In brackets: the same guesses against other users' items, the control.", markup=False)
    for finding in found.findings:
        mark = "[red]![/]" if finding.succeeds else "[green]ok[/]" if finding.applies else "[dim]-[/]"
        console.print(f"{mark:<2} {finding.attack}: {escape(finding.sentence)}")
    for note in found.notes:
        console.print(f"note: {note}", markup=False)
    if out is not None:
        console.print(f"Everything is in {out}", soft_wrap=True, markup=False)


def _cell(finding: AttackFinding, name: str) -> str:
    if name not in finding.values:
        return ""
    control = finding.values.get(f"shuffled {name}")
    return f"{finding.values[name]:.3f}" + ("" if control is None else f" [dim]({control:.3f})[/]")
