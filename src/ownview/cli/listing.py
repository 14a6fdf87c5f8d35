"""`ownview ls`: methods, plug-ins, presets, datasets and runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ownview.base.errors import OwnviewError
from ownview.blends.blend import Blend
from ownview.cli.data import list_datasets
from ownview.cli.display.terminal import Console
from ownview.cli.options import RUNS, AsJson, DataDir, print_json
from ownview.config.presets.loading import presets
from ownview.config.settings import SettingRule, Settings, declared, plain
from ownview.federation.checks.soundness import names_moved
from ownview.federation.options import FederationOptions
from ownview.registry import BASELINES, BLENDS, METHODS, MODELS, PLUGINS, Model
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.roles import REPORTED
from ownview.seam.training import ANY_WORLD

_WIDE = 140
"""Columns of a terminal in which a line about a method has room for everything."""
_RUN_COLUMNS = ("name", "method", "data", "began", "protocol", "seed", "rounds", "HR@10", "settings")


class Kind(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    PLUGINS = "plugins"
    PRESETS = "presets"
    DATASETS = "datasets"
    RUNS = "runs"


def command(
    kind: Annotated[Kind, typer.Argument(metavar="[KIND]", help=f"What to list: {', '.join(Kind)}.")] = Kind.METHODS,
    folder: Annotated[Path, typer.Option("--folder", help="Where runs are.")] = RUNS,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List methods, plug-ins, presets, datasets or runs."""
    if kind is Kind.DATASETS:
        list_datasets(data_dir, as_json)
        return
    listed = {Kind.METHODS: _methods, Kind.PLUGINS: _plugins, Kind.PRESETS: _presets}
    rows = _runs(folder) if kind is Kind.RUNS else listed[kind]()
    if as_json:
        every: dict[str, type[Settings]] = {**MODELS, **PLUGINS}
        detailed = [{**row, "settings": _settings(every[row["name"]])} if row["name"] in every else row for row in rows]
        detailed = _presets(whole=True) if kind is Kind.PRESETS else detailed
        options = {"federation": _settings(FederationOptions)} if kind is Kind.METHODS else {}
        print_json({kind.value: detailed, **options})
        return
    if not rows:
        typer.echo(f"no {kind.value} here" + (f" (looked in {folder})" if kind is Kind.RUNS else ""))
        return
    if kind is Kind.RUNS:
        _show_runs(rows)
        return
    console = Console(highlight=False)
    columns = [one for one in rows[0] if one != "kind"][: 2 if kind is Kind.METHODS and console.width < _WIDE else None]
    table = Table(box=None, pad_edge=False)
    for column in columns:
        least = 12 if column == "name" else None
        table.add_column(column.replace("_", " "), no_wrap=column == "name", overflow="fold", min_width=least)
    for before, row in zip([{}, *rows], rows, strict=False):
        if row.get("kind") != before.get("kind"):
            table.add_row(f"[bold]{row['kind']}[/]")
        table.add_row(*("" if row[column] is None else escape(str(row[column])) for column in columns))
    console.print(table)
    if kind is Kind.METHODS and console.width < _WIDE:
        console.print(
            f"\nWhat leaves a device, papers, settings: --json, or a terminal of {_WIDE} columns.", style="dim"
        )


def _show_runs(rows: list[dict[str, Any]]) -> None:
    """A line each; the path is never broken, so that it can be taken as it is. What is no default follows it."""
    columns = [name for name in _RUN_COLUMNS if name not in ("name", "method", "data", "seed", "settings")]
    texts = [{name: "" if row[name] is None else str(row[name]) for name in _RUN_COLUMNS} for row in rows]
    wide = {name: max(len(name), *(len(one[name]) for one in texts)) for name in columns}
    console = Console(highlight=False)

    def line(cells: dict[str, str], last: str) -> None:
        text = "  ".join(f"{cells[name]:<{wide[name]}}" for name in columns)
        console.print(f"{text}  {last}", soft_wrap=True, markup=False)

    line({name: name for name in columns}, "run")
    for one in texts:
        broken = one["method"].startswith("unreadable")
        line(one, "  ".join(filter(None, (one["name"], one["method"] if broken else one["settings"]))))


def _methods() -> list[dict[str, Any]]:
    every: dict[str, Mapping[str, type[Model]]] = {"federated": METHODS, "blended": BLENDS, "central": BASELINES}
    return [
        {
            "name": cls.name,
            "what": cls.summary,
            "leaves_the_device": _leaves(cls),
            "paper": cls.paper,
            "kind": kind,
        }
        for kind, some in every.items()
        for cls in some.values()
    ]


def _settings(cls: type[Settings]) -> dict[str, dict[str, Any]]:
    rules: dict[str, tuple[Any, SettingRule]] = {one.name: (one.default, one.metadata["rule"]) for one in declared(cls)}
    return {
        name: {"default": plain(default), "help": rule.help, "search": rule.search and rule.search.to_dict()}
        for name, (default, rule) in rules.items()
    }


def _leaves(cls: type[Model]) -> str:
    if issubclass(cls, Blend):
        return cls.leaves
    if not issubclass(cls, Federated):
        return "nothing" if cls.sends_nothing else "all data (not federated)"
    client = cls().client(ANY_WORLD)
    if isinstance(client.work, Reporting):
        return ", ".join(one.what for one in client.work.sends.values())
    moved = names_moved(client)
    leaving = {name: param for name, param in client.params.items() if param.sends and name in moved}
    seen = [name if param.role is not REPORTED else f"{name} (seen by the server)" for name, param in leaving.items()]
    return ", ".join(sorted(seen, key=lambda name: "(" in name)) or "nothing"


def _plugins() -> list[dict[str, Any]]:
    return [{"name": cls.name, "what": cls.summary, "paper": cls.paper} for cls in PLUGINS.values()]


def _presets(*, whole: bool = False) -> list[dict[str, Any]]:
    names = ("name", "method", "data", "tried", "about")
    return [{**{n: getattr(one, n) for n in names}, **(one.experiment() if whole else {})} for one in presets()]


def _figure(done: dict[str, Any] | None) -> float | str | None:
    if done is None:
        return None
    return round(done["test"]["HR@10"], 4) if "test" in done else "no figure"


def _runs(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("**/experiment.toml")):
        run = RunFolder(path.parent)
        name = str(path.parent.relative_to(folder))
        try:
            experiment = Experiment.from_toml(run.read_experiment(), str(path))
            done = run.read_result() if run.finished else None
            rounds = run.read_rounds()
        except OwnviewError as error:
            rows.append(dict.fromkeys(_RUN_COLUMNS) | {"name": name, "method": f"unreadable: {error}"})
            continue
        began = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M")
        values = (
            name, experiment.label(), experiment.data_label(), began, experiment.protocol.name, experiment.seed,
            f"{len(rounds)} of {experiment.rounds}", _figure(done), _not_defaults(experiment),
        )  # fmt: skip
        rows.append(dict(zip(_RUN_COLUMNS, values, strict=True)))
    return rows


def _not_defaults(asked: Experiment) -> str:
    """Settings as one would type them, but for defaults; all of a method in a file, which is not read for this."""
    owners: list[tuple[Mapping[str, Any], type[Settings] | None]] = [(asked.settings, MODELS.get(asked.method.lower()))]
    owners += [(values, PLUGINS.get(name)) for name, values in asked.plugins]
    owners += [(asked.federation.values(), FederationOptions)]
    settings = []
    for values, cls in owners:
        usual = {one.name: plain(one.default) for one in declared(cls)} if cls is not None else {}
        settings += [
            f"{name}={_typed(value)}"
            for name, value in values.items()
            if name not in usual or plain(value) != usual[name]
        ]
    return " ".join(settings)


def _typed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
