"""`ownview run`: one experiment into a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ownview.base.display.amounts import counted, readable
from ownview.base.errors import SettingError
from ownview.cli import options
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.models.fitted import show_fitted
from ownview.cli.options import new_folder, on_command_line, print_json, with_privacy
from ownview.cli.settings import folder_of, with_settings
from ownview.cli.trusting import Trust, names_a_file
from ownview.config.presets.loading import preset
from ownview.data.reading.columns import parse_columns
from ownview.engine.machine import Workers
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.federation.options import FederationOptions
from ownview.registry import BASELINES
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import Run, experiment_of, resume, run
from ownview.runs.summaries.differing_settings import differing_settings

Config = Annotated[Path | None, typer.Option("--config", help="An experiment as a TOML file; options override it.")]
PresetName = Annotated[
    str | None, typer.Option("--preset", help="Settings found for the method (`ownview ls presets`); --set overrides.")
]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the run; must not exist.")]
Inactive = Annotated[
    str, typer.Option("--inactive", help="Also measure users with so many interactions: 20:30 is 20 up to 29.")
]
Watching = Annotated[
    str | None, typer.Option("--watch", help="Users, separated by commas, whose clients are noted after every round.")
]
WorkerCount = Annotated[
    int | None, typer.Option("--workers", help="Processes that share the clients; needs the extra ray.", min=1)
]
RayAddress = Annotated[
    str,
    typer.Option("--ray", help="Workers of a Ray cluster that runs at HOST:PORT, all free ones if no number is given."),
]
ShardFolder = Annotated[
    Path | None, typer.Option("--shards", help="Where workers save what clients hold; all must reach it.")
]
Resume = Annotated[Path | None, typer.Option("--resume", help="Finish the interrupted run in this folder.")]


def command(
    context: typer.Context,
    method: Annotated[
        str | None, typer.Argument(help="A method (`ownview ls methods`) or a .py file.", callback=names_a_file)
    ] = None,
    data: options.Data = "goodbooks",
    columns: options.Columns = None,
    protocol: options.ProtocolName = "honest",
    rounds: options.Rounds = 100,
    measure_every: options.MeasureEvery = 1,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal results.")] = 0,
    inactive: Inactive = "",
    watch: Watching = None,
    privacy: options.Privacy = None,
    sets: options.Sets = None,
    plugin: options.Plugins = None,
    config: Config = None,
    preset_name: PresetName = None,
    out: Out = None,
    resume_from: Resume = None,
    engine: options.EngineName = "vector",
    device: options.Device = "auto",
    memory: options.Memory = "auto",
    workers: WorkerCount = None,
    ray: RayAddress = "",
    shards: ShardFolder = None,
    data_dir: options.DataDir = None,
    trust: Trust = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a method and measure it; everything goes into a run folder."""
    given = {name for name in context.params if on_command_line(context, name)}
    asked: dict[str, Any] = {
        "data": data, "rounds": rounds, "measure_every": measure_every, "seed": seed, "engine": engine,
        "device": device, "protocol": protocol, "inactive": inactive, "watch": tuple((watch or "").split(",")),
        "columns": parse_columns(columns),
    }  # fmt: skip
    sets = with_privacy(sets, privacy)
    asked = {name: value for name, value in asked.items() if name in given}
    if "protocol" in asked:
        asked["protocol"] = protocol_by_name(protocol)
    if resume_from is not None:
        _refuse(given & {"config", "out", "plugin", "columns", "preset_name"}, sets)
        title, total = f"resuming {resume_from.name}, rounds", experiment_of(RunFolder.open(resume_from)).rounds
        work = partial(resume, resume_from, asked=_comparable(asked, method))
    else:
        base = replace(base_experiment(method, asked.get("data", data), config, preset_name), **asked)
        wrapped = list(dict.fromkeys(plugin or (name for name, _ in base.plugins)))
        if sets or plugin or (method or base.method).lower() != base.method.lower():
            base = replace(base, settings_tried=0)  # what a file says of its settings is not true of others
        experiment = with_settings(base, method or base.method, wrapped, sets)
        asked_for = experiment.federation.privacy
        if asked_for != FederationOptions().privacy and experiment.method.lower() in BASELINES:
            raise SettingError(
                f"privacy={asked_for}: {experiment.method} is not federated: all data lies in one place and nothing "
                "would be protected; expected a federated method (`ownview ls methods`)"
            )
        title, total = f"{experiment.label()}{under(experiment)}, rounds", experiment.rounds_needed
        work = partial(run, experiment, out=out or new_folder(folder_of(experiment)))
    if shards is not None and not (workers or ray):
        raise SettingError(f"--shards {shards}: there are no workers; expected --workers or --ray with it")
    team = Workers(workers or 0, ray, shards) if workers or ray else None
    with progress(title, total, quiet=as_json) as advance:
        finished = work(
            memory=memory,
            data_dir=data_dir,
            workers=team,
            on_round=lambda number, metrics: advance(_words(metrics), number),
        )
    show(finished, as_json=as_json)


def under(experiment: Experiment) -> str:
    """What protects a run, for its progress; empty where nothing does."""
    privacy = experiment.federation.privacy
    return "" if privacy == FederationOptions().privacy else f" under {privacy}"


def show(finished: Run, *, as_json: bool) -> None:
    """Print a result: one JSON object, or a few lines for a person."""
    result = {**finished.result, "folder": str(finished.folder.path)}
    if as_json:
        print_json(result)
        return
    if not finished.measured:
        show_fitted(result)
        return
    console = Console(highlight=False)
    among = finished.experiment.protocol.candidates
    console.print(
        f"[bold]{escape(result['method'])}[/]{escape(_otherwise(finished))} on {escape(result['data'])}, "
        f"protocol [bold]{escape(result['protocol'])}[/], "
        f"seed {result['seed']}: test at round {result['chosen_round']} of {result['rounds']} "
        f"(chosen on {result['chosen_on']}), "
        f"{counted(result['users_ranked'], 'user')} ranked among {f'{among + 1}' if among else 'all'} items"
    )
    if "privacy" in result:
        console.print(f"  [bold]{escape(result['privacy']['headline'])}[/]", soft_wrap=True)
    shown = [f"{name} {value:.4f}" for name, value in result["test"].items()]
    for start in range(0, len(shown), 4):
        console.print("  " + "   ".join(f"{cell:<18}" for cell in shown[start : start + 4]).rstrip())
    low, high = result["interval_95"]["HR@10"]
    console.print(f"  HR@10's 95 % interval over users: {low:.4f} to {high:.4f}")
    _show_groups(console, result)
    if (result.get("cost") or {}).get("seconds"):
        console.print(_cost(result), soft_wrap=True, markup=False)
    for note in (one for one in result["notes"] if one != result.get("privacy", {}).get("headline")):
        console.print(f"  note: {note}", markup=False)
    console.print(f"  {result['seconds']:.1f} s, everything in {result['folder']}", soft_wrap=True, markup=False)


def _otherwise(finished: Run) -> str:
    """In brackets, what is not as it is without options: plug-ins, settings, the federation's; empty where all is."""
    labels = differing_settings(finished.experiment)
    return f" ({', '.join(labels)})" if labels else ""


def _show_groups(console: Console, result: dict[str, Any]) -> None:
    groups = result.get("groups", [])  # runs of earlier versions have neither groups nor cost
    cells = [f"{one['test']['HR@10']:.4f} ({'-'.join(map(str, one['interactions']))})" for one in groups]
    if cells:
        console.print(f"  HR@10 by interactions of the user: {'   '.join(cells)}", soft_wrap=True)
    if "inactive" in result:
        one = result["inactive"]
        words = "   ".join(f"{name} {one['test'][name]:.4f}" for name in HEADLINE)
        span = "-".join(map(str, one["interactions"]))
        console.print(f"  {one['label']} ({span} interactions), {one['users']:,} users: {words}", soft_wrap=True)


def _cost(result: dict[str, Any]) -> str:
    cost, seconds = result["cost"], result["cost"]["seconds"]
    return (
        f"  cost: client {readable(cost['client_bytes'])}, server {readable(cost['server_bytes'])}, "
        f"down {readable(result['bytes_down_per_client'])} and up {readable(result['bytes_up_per_client'])} a round "
        f"of {seconds['round']:.3g} s (slowest client {seconds['slowest_client']:.3g}, server {seconds['server']:.3g})"
    )


def base_experiment(method: str | None, data: str, config: Path | None, preset_name: str | None) -> Experiment:
    """What options of `run` and `fit` change: an experiment file, a preset, or the defaults."""
    if method is None and config is None:
        raise SettingError("name a method (`ownview ls methods`), or give --config FILE or --resume DIR")
    if config is not None:
        if preset_name is not None:
            raise SettingError(f"--preset {preset_name}: not with --config, which has settings of its own")
        return Experiment.load(config)
    if preset_name is not None:
        return Experiment.from_dict(preset(str(method), preset_name, data).experiment())
    return Experiment(method=str(method))


def _comparable(asked: dict[str, Any], method: str | None) -> dict[str, Any]:
    """What was asked for, in the words of experiment.toml."""
    words = Experiment(**{"method": method or "", **asked}).to_dict()
    names = [name for name in asked if not (name == "device" and asked[name] == "auto")]
    return {name: words[name] for name in (*names, *(["method"] if method else []))}


def _refuse(given: set[str], sets: Sequence[str]) -> None:
    names = [f"--{name.removesuffix('_name')}" for name in sorted(given)] + [f"--set {pair}" for pair in sets]
    if names:
        raise SettingError(f"{', '.join(names)}: not with --resume, which keeps the settings the run began with")


def _words(metrics: dict[str, float]) -> str:
    return f"HR@10 {metrics['HR@10']:.3f}" if metrics else ""
