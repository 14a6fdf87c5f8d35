"""`ownview fit`: a method trained on everything, to be used and not to be measured."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.errors import SettingError
from ownview.cli import options
from ownview.cli.display.progress import progress
from ownview.cli.experiments.run import PresetName, base_experiment, show, under
from ownview.cli.options import new_folder, on_command_line, with_privacy
from ownview.cli.settings import folder_of, with_settings
from ownview.cli.trusting import Trust, names_a_file
from ownview.data.datasets.catalog import load
from ownview.data.reading.columns import parse_columns
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.full_fit import fit_like, fit_of
from ownview.runs.run import experiment_of, resume, run

Like = Annotated[
    Path | None,
    typer.Option("--like", help="A finished run: its method, data, settings and plug-ins, and the round it chose."),
]


def command(
    context: typer.Context,
    method: Annotated[
        str | None, typer.Argument(help="A method (`ownview ls methods`) or a .py file.", callback=names_a_file)
    ] = None,
    like: Like = None,
    data: options.Data = "goodbooks",
    columns: options.Columns = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="Rounds of training, where the method needs a choice.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal models.")] = 0,
    privacy: options.Privacy = None,
    total_epsilon: options.Total = None,
    private: Annotated[
        bool, typer.Option("--private", help="Method and privacy by the numbers of people and items (docs/privacy.md).")
    ] = False,
    sets: options.Sets = None,
    plugin: options.Plugins = None,
    preset_name: PresetName = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the model; must not exist.")] = None,
    resume_from: Annotated[
        Path | None, typer.Option("--resume", help="Finish the interrupted model in this folder.")
    ] = None,
    engine: options.EngineName = "vector",
    device: options.Device = "auto",
    memory: options.Memory = "auto",
    data_dir: options.DataDir = None,
    trust: Trust = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a method on everything, nothing held out: for recommending, without a test figure."""
    given = {name for name in context.params if on_command_line(context, name)}
    if resume_from is not None:
        _refuse_beside_resume(given)
        title, total = f"resuming {resume_from.name}", experiment_of(RunFolder.open(resume_from)).rounds
        work = partial(resume, resume_from)
    else:
        if private:
            _refuse_beside_private(given)
            method, sets = _private_way(data, columns, data_dir)
        if like is not None:
            _refuse_beside_like(given, sets or [])
            found = parse_columns(columns) if "columns" in given else None
            experiment = fit_like(like, data=data if "data" in given else None, columns=found, privacy=privacy)
            _require_method(method, experiment, like)
        else:
            base = base_experiment(method, data, None, preset_name)
            base = replace(base, data=data, columns=parse_columns(columns) or {}, seed=seed, settings_tried=0)
            wrapped = list(dict.fromkeys(plugin or (name for name, _ in base.plugins)))
            asked = with_privacy(sets, privacy)
            experiment = fit_of(with_settings(base, method or base.method, wrapped, asked), rounds)
        experiment = replace(experiment, device=device, engine=engine if "engine" in given else experiment.engine)
        title, total = f"fitting {experiment.label()}{under(experiment)}, rounds", experiment.rounds_needed
        work = partial(run, experiment, out=out or new_folder(folder_of(experiment)), total=total_epsilon)
    with progress(title, total, quiet=as_json) as advance:
        finished = work(memory=memory, data_dir=data_dir, on_round=lambda number, metrics: advance("", number))
    show(finished, as_json=as_json)


def _require_method(method: str | None, experiment: Experiment, like: Path) -> None:
    if method is not None and method.lower() != experiment.method.lower():
        raise SettingError(
            f"{like}: is a run of {experiment.method}, not of {method}; leave the method out with --like"
        )


def _refuse_beside_like(given: set[str], sets: list[str]) -> None:
    taken = {"rounds": "--rounds", "seed": "--seed", "plugin": "--plugin", "preset_name": "--preset"}
    names = [option for name, option in taken.items() if name in given] + [f"--set {pair}" for pair in sets]
    if names:
        raise SettingError(f"{', '.join(names)}: not with --like, which takes what the run was measured with")


def _private_way(data: str, columns: str | None, data_dir: Path | None) -> tuple[str, list[str]]:
    """Method and settings that suit the numbers of people and items; both are printed."""
    from ownview.start.private import People, without_figures  # noqa: PLC0415 - slow to import, and few ask

    loaded = load(data, data_dir=data_dir, columns=parse_columns(columns) or {})
    way = without_figures(People.of(loaded, ordered=loaded.timestamp is not None))
    setting = f" --privacy {way.privacy}" if way.privacy != "none" else ""
    choice = f"{way.way}: {way.method}{setting}, by {loaded.num_users:,} people and {loaded.num_items:,} items"
    typer.echo(f"private: {choice}", err=True)
    sets = [f"{name}={value}" for name, value in way.settings.items()]
    return way.method, sets + ([] if way.privacy == "none" else [f"privacy={way.privacy}"])


def _refuse_beside_private(given: set[str]) -> None:
    taken = {"method": "METHOD", "like": "--like", "privacy": "--privacy", "rounds": "--rounds", "sets": "--set",
             "plugin": "--plugin", "preset_name": "--preset"}  # fmt: skip
    if names := [option for name, option in taken.items() if name in given]:
        raise SettingError(f"{', '.join(names)}: not with --private, which chooses the method and its privacy")


def _refuse_beside_resume(given: set[str]) -> None:
    allowed = {"resume_from", "memory", "data_dir", "trust", "as_json"}
    words: dict[str, Any] = {"preset_name": "--preset", "sets": "--set", "method": "METHOD", "total_epsilon": "--total"}
    names = [words.get(name, f"--{name}") for name in sorted(given - allowed)]
    if names:
        raise SettingError(f"{', '.join(names)}: not with --resume, which keeps the settings it began with")
