"""`ownview report`: run folders as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ownview.base.display.amounts import counted, readable
from ownview.base.errors import OutputError
from ownview.base.files import write_text
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.runs.files.folder import RunFolder
from ownview.runs.full_fit import NO_TEST_FIGURE

if TYPE_CHECKING:
    from ownview.report.gather import Publications

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
    from ownview.report.gather import gather, render  # noqa: PLC0415 - slow to import
    from ownview.report.reading import find_runs  # noqa: PLC0415

    if out.is_dir():
        raise OutputError(f"{out}: is a folder; expected a file such as {out / 'report.html'}")
    if out.exists() and not force:
        raise OutputError(f"{out}: already exists; choose another --out, or overwrite it with --force")
    found = find_runs(runs)
    fitted = [one for one in found if RunFolder(one).finished and "no_test_figure" in RunFolder(one).read_result()]
    if len(fitted) == len(found):
        raise OutputError(f"{found[0]}: {NO_TEST_FIGURE}; expected measured runs")
    measured = [one for one in found if one not in fitted]
    with progress("reading, runs", len(measured)) as advance:
        model = gather(measured, title=title, done=advance, publications=publications)
    write_text(out, render(model))
    about, console = model["about"], Console(highlight=False)
    size = readable(out.stat().st_size)
    console.print(f"{out}: {counted(about['runs'], 'run')}, {size}", soft_wrap=True, markup=False)
    for one in fitted:
        console.print(f"note: {one} is left out: {NO_TEST_FIGURE}", soft_wrap=True, markup=False)
    for name in about["unfinished"]:
        console.print(f"note: {name} has not finished and is left out", soft_wrap=True, markup=False)
    for sentence in about["missing"]:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
