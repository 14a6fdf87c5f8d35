"""`ownview report`: run folders as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import OutputError
from ownview.base.files import write_text
from ownview.cli.terminal import Console


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold them.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page.")] = Path("report.html"),
    title: Annotated[str, typer.Option("--title", help="Of the page; the datasets' names unless given.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing page.")] = False,
) -> None:
    """Make one self-contained HTML page of finished runs: tables, curves, lists, pictures."""
    from ownview.report.gather import gather, render  # noqa: PLC0415 - slow to import, and other commands need it not
    from ownview.report.reading import find_runs  # noqa: PLC0415

    if out.is_dir():
        raise OutputError(f"{out}: is a folder; expected a file such as {out / 'report.html'}")
    if out.exists() and not force:
        raise OutputError(f"{out}: already exists; choose another --out, or overwrite it with --force")
    model = gather(find_runs(runs), title=title)
    write_text(out, render(model))
    about, console = model["about"], Console(highlight=False)
    size = out.stat().st_size / 1e6
    console.print(f"{out}: {about['runs']} runs, {size:.1f} MB", soft_wrap=True, markup=False)
    for name in about["unfinished"]:
        console.print(f"note: {name} has not finished and is left out", soft_wrap=True, markup=False)
    for sentence in about["missing"]:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
