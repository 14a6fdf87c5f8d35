"""`ownview tune`: find settings by validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from ownview.base.display.amounts import counted
from ownview.cli import options
from ownview.cli.display.progress import bars
from ownview.cli.display.terminal import Console
from ownview.cli.options import print_json, with_privacy
from ownview.cli.settings import folder_of, with_settings
from ownview.cli.trusting import Trust, names_a_file, names_files_in_values
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.runs.experiment import Experiment
from ownview.studies.tuning.trials import COMPLETE, Trial, TuningFolder, best_of, ranked, recorded
from ownview.studies.tuning.tune import METRICS, OnRound, OnTrial, Tuning, searched, tune

_SHOWN = 10

Trials = Annotated[int, typer.Option("--trials", help="Trials in all, those of earlier starts included.")]
Searches = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        help="NAME=LOW:HIGH[:log] or NAME=a,b,c; NAME alone adds a setting of the federation. May be repeated.",
    ),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--set", callback=names_files_in_values,
        help="NAME=VALUE pins a setting instead of searching it; may be repeated.",
    ),
]  # fmt: skip


def command(
    method: Annotated[
        str, typer.Argument(help="A method (`ownview ls methods`) or a .py file.", callback=names_a_file)
    ],
    data: options.Data = "goodbooks",
    trials: Trials = 30,
    columns: options.Columns = None,
    protocol: options.ProtocolName = "honest",
    metric: Annotated[str, typer.Option("--metric", help=" or ".join(METRICS) + ", on validation.")] = METRICS[0],
    rounds: options.Rounds = 100,
    measure_every: options.MeasureEvery = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the search and of every trial.")] = 0,
    search: Searches = None,
    sets: Pins = None,
    privacy: options.Privacy = None,
    plugin: options.Plugins = None,
    pruner: Annotated[str, typer.Option("--pruner", help="Who ends poor trials early: median, halving or none.")] = (
        "median"
    ),
    out: Annotated[
        Path | None, typer.Option("-o", "--out", "--resume", help="Folder of the tuning; one that exists goes on.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="File for the question and every trial: settings, validation value.")
    ] = None,
    engine: options.EngineName = "vector",
    device: options.Device = "auto",
    memory: options.Memory = "auto",
    data_dir: options.DataDir = None,
    trust: Trust = False,
    as_json: options.AsJson = False,
) -> None:
    """Find a method's best settings on validation; test is not looked at. The same command goes on where it stopped."""
    pairs = with_privacy(sets, privacy)
    plugins = list(dict.fromkeys(plugin or []))
    plain = Experiment(
        method=method, data=data, columns=parse_columns(columns) or {}, protocol=protocol_by_name(protocol),
        rounds=rounds, measure_every=measure_every, seed=seed, engine=engine, device=device,
    )  # fmt: skip
    base = with_settings(plain, method, plugins, pairs)
    pinned = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
    tuning = Tuning(base, searched(method, plugins, pinned, search or []), trials, metric, pruner)
    folder = TuningFolder(out or folder_of(base, "tune-"))
    with _live(tuning, quiet=as_json) as (on_round, on_trial):
        ended = tune(tuning, folder, memory=memory, data_dir=data_dir, on_round=on_round, on_trial=on_trial)
    if record is not None:
        recorded(folder, record)
    if as_json:
        print_json(_summary(tuning, ended, folder))
        return
    _show(tuning, ended, folder)


@contextmanager
def _live(tuning: Tuning, *, quiet: bool) -> Iterator[tuple[OnRound, OnTrial]]:
    """Two bars on stderr, trials and rounds of the one in progress; nothing where that is no terminal."""
    with bars(quiet=quiet) as bar:
        if bar is None:
            yield lambda trial, number, value: None, lambda trial: None
            return
        trials = bar.add_task(f"tuning {tuning.base.label()}", total=tuning.trials, words="")
        rounds = bar.add_task("trial", total=tuning.base.rounds, words="")
        best: list[float] = []

        def on_round(trial: int, number: int, value: float) -> None:
            bar.update(trials, completed=trial - 1)
            bar.update(rounds, description=f"trial {trial}", completed=number, words=f"{tuning.metric} {value:.4f}")

        def on_trial(trial: Trial) -> None:
            best.extend([trial.value] if trial.state == COMPLETE and trial.value is not None else [])
            words = f"best {max(best):.4f}" if best else ""
            bar.update(trials, completed=trial.number, words=words)
            found = "failed" if trial.value is None else f"{tuning.metric} {trial.value:.4f}"
            line = f"trial {trial.number}: {found} at round {trial.round}, {trial.state}"
            bar.console.print(line, style="dim", markup=False, highlight=False)

        yield on_round, on_trial


def _show(tuning: Tuning, ended: Sequence[Trial], folder: TuningFolder) -> None:
    console = Console(highlight=False)
    base, best = tuning.base, best_of(ended)
    numbers = [Column(name, justify="right", no_wrap=True) for name in ("trial", tuning.metric, "round")]
    others = [Column("state", no_wrap=True), Column("settings", overflow="fold")]
    table = Table(*numbers, *others, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for trial in ranked(ended)[:_SHOWN]:
        value = "" if trial.value is None else f"{trial.value:.4f}"
        settings = ", ".join(f"{name}={_short(text)}" for name, text in trial.settings.items())
        table.add_row(str(trial.number), value, str(trial.round), trial.state, escape(settings))
    console.print(
        f"[bold]{escape(base.label())}[/] on {escape(base.data_label())}, "
        f"protocol [bold]{escape(base.protocol.name)}[/], seed {base.seed}: {counted(len(ended), 'trial')} of at most "
        f"{counted(base.rounds, 'round')}, on validation; test was not looked at"
    )
    console.print(table)
    if len(ended) > _SHOWN:
        console.print(f"and {len(ended) - _SHOWN} more in {folder.path / 'trials.jsonl'}", soft_wrap=True, markup=False)
    console.print(f"Beside its defaults, three seeds: ownview bench {folder.suite}", soft_wrap=True, markup=False)
    console.print(f"Best: trial {best.number}. Run it with:", markup=False)
    console.print(f"  ownview run --config {folder.best}", soft_wrap=True, markup=False)


def _summary(tuning: Tuning, ended: Sequence[Trial], folder: TuningFolder) -> dict[str, Any]:
    return {
        "method": tuning.base.label(),
        "data": tuning.base.data_label(),
        "protocol": tuning.base.protocol.name,
        "seed": tuning.base.seed,
        "metric": tuning.metric,
        "measured_on": "validation",
        "search": {name: str(knob.space) for name, knob in tuning.chosen.items()},
        "best": _fields(best_of(ended)),
        "trials": [_fields(trial) for trial in ended],
        "config": str(folder.best),
        "folder": str(folder.path),
    }


def _fields(trial: Trial) -> dict[str, Any]:
    columns = ("state", "value", "round", "settings", "seconds", "reason")
    return {"trial": trial.number, **{name: getattr(trial, name) for name in columns}}


def _short(text: str) -> str:
    """A number with four digits; anything else as it is."""
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return text
