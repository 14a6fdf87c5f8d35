"""Options that several commands share, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.errors import SettingError, suggestion
from ownview.config.settings import declared
from ownview.federation.options import FederationOptions
from ownview.registry import PLUGINS, find_model, find_plugin
from ownview.seam.method import own_settings

Data = Annotated[str, typer.Option("--data", help="A dataset (`ownview data ls`) or a file of interactions.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="A file's own column names: user=who,item=what,timestamp=when.")
]
Rounds = Annotated[int, typer.Option("--rounds", help="Rounds of training; for central models, epochs.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE of the method, of the federation, or PLUGIN.NAME=VALUE; may be repeated."),
]
Privacy = Annotated[
    str | None,
    typer.Option("--privacy", help="Noise on uploads: laplace:0.5, or gaussian:clip=0.1,noise=1 (clipped first)."),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
EngineName = Annotated[str, typer.Option("--engine", help="vector, or loop for one client at a time.")]
Memory = Annotated[str, typer.Option("--memory", help="What training may take, such as 4GB.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of datasets, searched before $OWNVIEW_DATA and the cache.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

RUNS = Path("runs")
"""Where runs go unless --out says otherwise."""


def new_folder(name: str) -> Path:
    """runs/NAME, or runs/NAME-2, runs/NAME-3 and so on where that is taken."""
    safe = name.replace("/", "-").replace(" ", "")
    number = 1
    while (folder := RUNS / (safe if number == 1 else f"{safe}-{number}")).exists():
        number += 1
    return folder


def belongs(pair: str, method: str, plugins: Sequence[str]) -> bool:
    """Whether NAME=VALUE is a setting of the method, of one of its plug-ins, or of the federation."""
    name = pair.partition("=")[0]
    model = find_model(method)
    known = {
        *own_settings(model),
        *(f"{plugin}.{own}" for plugin in plugins for own in own_settings(find_plugin(plugin))),
    }
    return name in known or (model.federated and name in {one.name for one in declared(FederationOptions)})


def read_sets(
    method: str, plugins: Sequence[str], sets: Sequence[str]
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    """Sort NAME=VALUE pairs to whom they belong: the method, its plug-ins, the federation.

    Returns:
        settings of the method, (name, settings) of every plug-in, and options of the federation.
    """
    of_method = set(own_settings(find_model(method)))
    of_federation = {one.name for one in declared(FederationOptions)}
    of_plugins = {f"{name}.{own}" for name in plugins for own in own_settings(find_plugin(name))}
    chosen: dict[str, dict[str, Any]] = {"method": {}, "federation": {}, **{name: {} for name in plugins}}
    for pair in sets:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair}: expected NAME=VALUE")
        if name in of_method:
            chosen["method"][name] = value
        elif name in of_federation:
            chosen["federation"][name] = value
        elif name in of_plugins:
            plugin, _, own = name.partition(".")
            chosen[plugin][own] = value
        elif (plugin := name.partition(".")[0]) in PLUGINS and plugin not in plugins:
            raise SettingError(f"--set {pair}: plug-in {plugin} is not in use; add --plugin {plugin}")
        else:
            near = suggestion(name, of_method | of_federation | of_plugins)
            raise SettingError(f"--set {pair}: neither {method} nor the federation has a setting {name!r}{near}")
    typed = {name: find_model(method).read(name, value) for name, value in chosen["method"].items()}
    return typed, [(name, chosen[name]) for name in plugins], chosen["federation"]
