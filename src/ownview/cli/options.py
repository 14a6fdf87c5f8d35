"""Options that several commands share, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.errors import SettingError, suggestion
from ownview.registry import PLUGINS, find_model
from ownview.runs.named_settings import FEDERATION, METHOD, named_settings

Data = Annotated[str, typer.Option("--data", help="A dataset (`ownview data ls`) or a file of interactions.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="A file's own column names: user=who,item=what,timestamp=when.")
]
MeasureEvery = Annotated[
    int, typer.Option("--measure-every", help="Rounds from one measurement of validation to the next.")
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
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Runs side by side; as many as cores are free if not given.", min=1)
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


def with_privacy(sets: Sequence[str] | None, privacy: str | None) -> list[str]:
    """NAME=VALUE pairs, --privacy as one of them."""
    return [*(sets or []), *([] if privacy is None else [f"privacy={privacy}"])]


def belongs(pair: str, method: str, plugins: Sequence[str]) -> bool:
    """Whether NAME=VALUE is a setting of the method, of one of its plug-ins, or of the federation."""
    found = named_settings(method, plugins).get(pair.partition("=")[0])
    return found is not None and (found.owner != FEDERATION or find_model(method).federated)


def read_sets(
    method: str, plugins: Sequence[str], sets: Sequence[str]
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    """Sort NAME=VALUE pairs to whom they belong: the method, its plug-ins, the federation.

    Returns:
        settings of the method, (name, settings) of every plug-in, and options of the federation.
    """
    known = named_settings(method, plugins)
    chosen: dict[str, dict[str, Any]] = {METHOD: {}, FEDERATION: {}, **{name: {} for name in plugins}}
    for pair in sets:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair}: expected NAME=VALUE")
        if name in known:
            chosen[known[name].owner][known[name].own] = value
        elif (plugin := name.partition(".")[0]) in PLUGINS and plugin not in plugins:
            raise SettingError(f"--set {pair}: plug-in {plugin} is not in use; add --plugin {plugin}")
        else:
            near = suggestion(name, set(known))
            raise SettingError(f"--set {pair}: neither {method} nor the federation has a setting {name!r}{near}")
    typed = {name: find_model(method).read(name, value) for name, value in chosen[METHOD].items()}
    return typed, [(name, chosen[name]) for name in plugins], chosen[FEDERATION]
