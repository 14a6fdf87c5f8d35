"""`ownview score`: lists of any program, measured under a protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import SettingError
from ownview.cli.experiments.run import show
from ownview.cli.options import RUNS, AsJson, Columns, Data, DataDir, ProtocolName, new_folder
from ownview.data.datasets.catalog import load, min_interactions
from ownview.data.lists import FORMS, write_split
from ownview.data.reading.columns import parse_columns
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.runs.scoring import score


def command(
    lists: Annotated[
        Path | None, typer.Argument(help="Parquet, CSV, TSV, .inter or JSON lines: user, item, score or rank.")
    ] = None,
    data: Data = "goodbooks",
    columns: Columns = None,
    protocol: ProtocolName = "honest",
    name: Annotated[str, typer.Option("--name", help="Of the row; the file's name if not given.")] = "",
    seed: Annotated[int, typer.Option("--seed", help="Of candidates, where the protocol draws any.")] = 0,
    split: Annotated[
        Path | None, typer.Option("--write-split", help="Instead: write train, validation and test into this folder.")
    ] = None,
    form: Annotated[str, typer.Option("--form", help=f"Of the files of --write-split: {', '.join(FORMS)}.")] = "plain",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the run; must not exist.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure recommendation lists of any program under a protocol, as a run; or write what it may train on."""
    if (lists is None) == (split is None):
        raise SettingError("expected LISTS to measure, or --write-split FOLDER for a program to train on")
    source = load(data, data_dir=data_dir, columns=parse_columns(columns))
    if split is not None:
        asked = protocol_by_name(protocol)
        for path in write_split(asked.prepare(source, min_interactions(data)), split, form):
            typer.echo(str(path))
        return
    assert lists is not None
    folder = out or new_folder(RUNS / f"score-{lists.stem}")
    show(score(lists, source, protocol=protocol, name=name, seed=seed, out=folder), as_json=as_json)
