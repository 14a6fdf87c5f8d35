"""`ownview compare`: several methods, seeds and protocols in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.amounts import counted
from ownview.base.errors import OutputError, SettingError, suggestion
from ownview.cli import options
from ownview.cli.display.figures import figures, warn
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import PROTOCOL_NAMES, RUNS, new_folder, print_json, with_privacy
from ownview.cli.settings import settings_of, with_settings
from ownview.cli.trusting import Trust, names_files, names_files_in_values
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.findings import Finding
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.runs.batch import MOST_SEEDS, Task, run_all
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder, going_on
from ownview.runs.findings.audits import findings_of
from ownview.runs.findings.exposure import LIAR, exposures
from ownview.runs.table import Comparison


def command(
    methods: Annotated[
        list[str] | None,
        typer.Argument(help="Methods (`ownview ls methods`), METHOD+PLUGIN, or .py files.", callback=names_files),
    ] = None,
    online: Annotated[
        Path | None,
        typer.Option("--online", help="A log of ownview serve --against: its two models, by what was chosen."),
    ] = None,
    data: options.Data = "goodbooks",
    columns: options.Columns = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", help=f"honest if not given; may be repeated: {PROTOCOL_NAMES}."),
    ] = None,
    rounds: options.Rounds = 100,
    measure_every: options.MeasureEvery = 1,
    seeds: Annotated[
        int, typer.Option("--seeds", help="Runs of each method, with seeds 0, 1, ...", min=1, max=MOST_SEEDS)
    ] = 1,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            callback=names_files_in_values,
            help="NAME=VALUE, for every method that has the setting; may be repeated.",
        ),
    ] = None,
    privacy: options.Privacy = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for all runs.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", help="Go on with the comparison in this folder, by the same command; a new one begins."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs side by side.", min=1)] = 1,
    engine: options.EngineName = "vector",
    device: options.Device = "auto",
    memory: options.Memory = "auto",
    data_dir: options.DataDir = None,
    trust: Trust = False,
    as_json: options.AsJson = False,
) -> None:
    """Train several methods on the same data and put them side by side."""
    if (online is None) == (not methods):
        raise SettingError("expected METHODS to train, or --online LOG to read" + (", not both" if online else ""))
    if online is not None:
        _show_online(online, as_json=as_json)
        return
    if resume is not None and out is not None and resume != out:
        raise SettingError(f"--resume {resume}: goes on there and not in --out {out}; leave one of them out")
    asked = resume or out
    if asked is not None and RunFolder(asked).begun:
        raise OutputError(f"{asked}: is the folder of one run; expected one for several: choose another --out")
    if resume is None and out is not None and out.exists():
        raise OutputError(f"{out}: already exists; choose another --out, or go on with it by adding {going_on(out)}")
    folder = asked or new_folder(RUNS / f"compare-{Path(data).stem}")
    base = Experiment(
        method="", data=data, columns=parse_columns(columns) or {}, rounds=rounds, measure_every=measure_every,
        engine=engine, device=device,
    )  # fmt: skip
    protocols = list(dict.fromkeys(protocol or ["honest"]))
    tasks = _tasks(base, methods or [], protocols, seeds, with_privacy(sets, privacy), folder)
    if resume is not None:
        _require_a_begun_one(folder, tasks)
    needed = [experiment.rounds_needed for experiment, _ in tasks]
    with progress(f"{counted(len(tasks), 'run')}, rounds", sum(needed), quiet=as_json) as advance:
        runs = run_all(
            tasks, jobs=jobs, memory=memory, data_dir=data_dir, on_round=lambda run, number, metrics: advance(run.name)
        )
    comparison = replace(
        Comparison.of(runs, findings_of(runs, probe=True, data_dir=data_dir)),
        exposed=exposures(runs, probe=True, data_dir=data_dir),
    )
    lying = exposures(runs, data_dir=data_dir, what=LIAR)
    if as_json:
        liars = {method: found.to_dict() for method, found in lying.items()}
        print_json({**comparison.to_dict(), "liars": liars, "folder": str(folder)})
        return
    _show(comparison, needed, seeds, folder, lying)


def _show_online(log: Path, *, as_json: bool) -> None:
    from ownview.evaluation.online import compared_online  # noqa: PLC0415 - few ask

    found = compared_online(log)
    if as_json:
        print_json(found.to_dict())
        return
    console = Console(highlight=False)
    for name, one in (("a", found.a), ("b", found.b)):
        console.print(
            f"model {name} ({', '.join(one.models)}): {one.value:.4f} = {one.hits:,} of {counted(one.lists, 'list')} "
            f"in {one.buckets} buckets",
            soft_wrap=True, markup=False,
        )  # fmt: skip
    console.print(
        f"b minus a: {found.b.value - found.a.value:+.4f} ({found.low:+.4f} to {found.high:+.4f}, 95 % interval over "
        "buckets)",
        soft_wrap=True, markup=False,
    )  # fmt: skip
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False)


def _tasks(
    base: Experiment, methods: list[str], protocols: list[str], seeds: int, sets: list[str], folder: Path
) -> list[Task]:
    """Every method under every protocol with every seed, and the folder each goes to."""
    unused, known = set(sets), set[str]()
    tasks: list[Task] = []
    for asked in (protocol_by_name(name) for name in protocols):
        for spec in dict.fromkeys(methods):
            method, *plugins = [spec] if spec.endswith(".py") else spec.split("+")
            own = settings_of(method, plugins)
            known |= own
            mine = [pair for pair in sets if _name(pair) in own]
            unused -= set(mine)
            experiment = with_settings(replace(base, protocol=asked), method, plugins, mine)
            name = f"{Path(method).stem if not plugins else spec}-{asked.name}"
            tasks += [(replace(experiment, seed=seed), folder / f"{name}-seed{seed}") for seed in range(seeds)]
    if unused:
        wrong = min(unused)
        near = suggestion(_name(wrong), known)
        raise SettingError(f"--set {wrong}: no method of this comparison has that setting{near}")
    places = [place for _, place in tasks]
    if twice := [place for place in places if places.count(place) > 1]:
        raise SettingError(f"two runs would go to {twice[0]}; rename one of the method or protocol files")
    return tasks


def _require_a_begun_one(folder: Path, tasks: list[Task]) -> None:
    """Runs go on, or begin, where there is one of these or nothing; not among other things."""
    if folder.is_dir() and any(folder.iterdir()) and not any(place.exists() for _, place in tasks):
        expected = ", ".join(place.name for _, place in tasks[:3])
        raise OutputError(
            f"{folder}: holds no run of this comparison, so there is nothing to go on with; expected {expected} or the "
            "like there: choose another --out, or leave --resume out for a new folder"
        )


def _name(pair: str) -> str:
    return pair.partition("=")[0]


def _show(comparison: Comparison, rounds: list[int], seeds: int, folder: Path, lying: Mapping[str, Finding]) -> None:
    console = Console(highlight=False)
    warn(console, comparison, lying)
    most = ("up to " if min(rounds) < max(rounds) else "") + counted(max(rounds), "round")
    title = f"{comparison.data}: test, {most}, {counted(seeds, 'seed')}"
    console.print(figures(comparison, title, over_seeds=seeds > 1))
    spread = "standard deviation over seeds" if seeds > 1 else "95 % interval over users"
    chosen = ", ".join(f"{stage} ({protocol})" for protocol, stage in comparison.chosen_on.items())
    console.print(f"In brackets: {spread}. Round chosen on: {chosen}.", markup=False)
    if len(comparison.methods) > 1:
        console.print(comparison.legend, markup=False)
    for note in comparison.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"Every run is in {folder}", soft_wrap=True, markup=False)
