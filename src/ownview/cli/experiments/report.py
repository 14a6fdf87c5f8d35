"""`ownview report`: run folders as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ownview.base.display.amounts import counted, readable
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.runs.full_fit import NO_TEST_FIGURE

if TYPE_CHECKING:
    from ownview.reports.gather import Publications

Runs = Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold them.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="The page.")]
Title = Annotated[str, typer.Option("--title", help="Of the page; the datasets' names unless given.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing page.")]


def command(runs: Runs, out: Out = Path("report.html"), title: Title = "", force: Force = False) -> None:
    """Make one self-contained HTML page of finished runs: tables, curves, lists, pictures."""
    write_report(runs, out, title, force)


def write_report(
    runs: list[Path], out: Path, title: str, force: bool, publications: Publications | None = None
) -> None:
    """Write the page and say what it holds; with published figures beside the runs where `publications` has some."""
    from ownview.reports.writing import measured_among, require_free, write_page  # noqa: PLC0415 - slow to import

    require_free(out, force=force)
    measured, fitted = measured_among(runs)
    with progress("reading, runs", len(measured)) as advance:
        about = write_page(measured, out, title, publications, advance)
    console = Console(highlight=False)
    size = readable(out.stat().st_size)
    console.print(f"{out}: {counted(about['runs'], 'run')}, {size}", soft_wrap=True, markup=False)
    for one in fitted:
        console.print(f"note: {one} is left out: {NO_TEST_FIGURE}", soft_wrap=True, markup=False)
    for name in about["unfinished"]:
        console.print(f"note: {name} has not finished and is left out", soft_wrap=True, markup=False)
    for sentence in about["missing"]:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
