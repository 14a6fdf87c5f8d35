"""`ownview export`: a finished model as a folder for a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.amounts import readable
from ownview.base.errors import SettingError
from ownview.cli.display.terminal import Console
from ownview.cli.display.work import working
from ownview.cli.options import DataDir, MinPeople, NewItems
from ownview.cli.trusting import Trust

_EXPECTED = 10.0
"""Seconds that it takes for some thousands of items."""


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run, or of a deployment's server.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The new folder.")],
    min_people: MinPeople = 5,
    new_items: NewItems = None,
    data_dir: DataDir = None,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="One file for telephones, instead of arrays and a scorer.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Write a finished model into a folder for a device: arrays, titles, a scorer that needs numpy only, a card."""
    from ownview.pages.export import export  # noqa: PLC0415 - slow to import, and help does without

    with working("packing", {str(out): _EXPECTED}) as work:
        work.begin(str(out))
        if onnx:
            from ownview.phones.export import export_onnx  # noqa: PLC0415 - needs an extra

            if new_items is not None:
                raise SettingError(
                    "--new-items: items without interactions are not for --onnx yet; leave one of them out"
                )
            done = export_onnx(run, out, min_people=min_people, data_dir=data_dir)
        else:
            done = export(run, out, min_people=min_people, data_dir=data_dir, new_items=new_items)
    console = Console(highlight=False)
    console.print(f"{done.path}: {readable(done.bytes)}", soft_wrap=True, markup=False)
    console.print(done.fidelity.sentence(), soft_wrap=True, markup=False)
    if done.runtime:
        console.print(done.runtime, soft_wrap=True, markup=False)
    for sentence in done.exposure.sentences():
        console.print(f"weights: {sentence}", soft_wrap=True, markup=False)
    for sentence in done.left_out:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
