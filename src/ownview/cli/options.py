"""What several commands share: options, how they are read, and how a program is answered."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.errors import SettingError
from ownview.cli.trusting import names_files, names_files_in_values


def _above_zero(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise SettingError(f"--total {value:g}: expected an epsilon above 0")
    return value


def _size(value: str) -> str:
    """Refused before anything is read or written."""
    if value != "auto":
        from ownview.engine.machine import parse_bytes  # noqa: PLC0415 - slow to import, help does without

        parse_bytes(value)
    return value


Data = Annotated[str, typer.Option("--data", help="A dataset (`ownview data ls`) or a file of interactions.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="The file's own names or numbers of columns, as in user=who,item=what; also rating, timestamp and title.",
    ),
]
PROTOCOL_NAMES = (
    "honest, paper, next-sitting, honest-time, sequential, new-users, new-items, new-items-among-all, or a .toml file"
)
"""What --protocol takes, for its help; word for word: protocols themselves load torch, which many commands need not."""

MeasureEvery = Annotated[
    int, typer.Option("--measure-every", help="Rounds from one measurement of validation to the next.")
]
ProtocolName = Annotated[
    str,
    typer.Option(
        "--protocol",
        help=f"What is asked: {PROTOCOL_NAMES}.",
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", callback=names_files, help="Wrap the method; a name or a .py file, may be repeated."),
]
Rounds = Annotated[int, typer.Option("--rounds", help="Rounds of training; for central models, epochs.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", callback=names_files_in_values,
        help="NAME=VALUE of the method, of the federation, or PLUGIN.NAME=VALUE; may be repeated.",
    ),
]  # fmt: skip
Privacy = Annotated[
    str | None,
    typer.Option(
        "--privacy",
        help="A budget: central:epsilon=8 (docs/privacy.md). Masks alone: masked:clip=1. Noise alone: laplace:0.5, "
        "gaussian:clip=0.1,noise=1.",
    ),
]
Total = Annotated[
    float | None,
    typer.Option(
        "--total",
        help="Epsilon that all models of the same people together may reach from now on (`ownview privacy`).",
        callback=_above_zero,
    ),
]
NewItems = Annotated[
    Path | None,
    typer.Option("--new-items", help="Offer items of this file without interactions too, by their text."),
]
MinPeople = Annotated[
    int,
    typer.Option("--min-people", help="Leave out items that fewer people had; 1 leaves nothing out.", min=1),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="vector, compiled (for long runs), or loop for one client at a time.")
]
Memory = Annotated[
    str,
    typer.Option(
        "--memory",
        help="What clients' values and blocks of clients may take, such as 4GB; copies come on top.",
        callback=_size,
    ),
]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of datasets, searched before $OWNVIEW_DATA and the cache.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Runs side by side; as many as cores are free if not given.", min=1)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

RUNS = Path("runs")
"""Where runs go unless --out says otherwise."""


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object, the whole output of a command with --json."""
    typer.echo(json.dumps(values, indent=2))


def new_folder(wanted: Path) -> Path:
    """The folder, or FOLDER-2, FOLDER-3 and so on where that is taken."""
    folder, number = wanted, 1
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def on_command_line(context: typer.Context, name: str) -> bool:
    """Whether an option was given, and not left at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def with_privacy(sets: Sequence[str] | None, privacy: str | None) -> list[str]:
    """NAME=VALUE pairs, --privacy as one of them."""
    return [*(sets or []), *([] if privacy is None else [f"privacy={privacy}"])]
