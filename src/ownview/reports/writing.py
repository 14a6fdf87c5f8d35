"""The page of finished runs as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ownview.base.arguments import kind_of, kinds_checked
from ownview.base.errors import OutputError, SettingError
from ownview.base.files import write_text
from ownview.reports.gather import Publications, gather, render
from ownview.reports.reading import find_runs
from ownview.runs.files.folder import RunFolder
from ownview.runs.full_fit import NO_TEST_FIGURE
from ownview.runs.run import Run


@kinds_checked("runs")
def report(
    runs: Sequence[Run | str | Path], out: str | Path = "report.html", *, title: str = "", force: bool = False
) -> Path:
    """Make one self-contained HTML page of finished runs: tables, curves, lists, pictures.

    Args:
        runs: runs, their folders, or folders that hold them: that of a comparison or of a suite.
        out: the page.
        title: of the page; the datasets' names unless given.
        force: overwrite an existing page.
    """
    if not isinstance(runs, Sequence) or isinstance(runs, str):
        raise SettingError(f"runs is {kind_of(runs)}; expected a list of runs or of their folders")
    if wrong := [one for one in runs if not isinstance(one, Run | str | Path)]:
        raise SettingError(f"one of runs is {kind_of(wrong[0])}; expected a run or its folder")
    require_free(Path(out), force=force)
    measured, _ = measured_among([one.folder.path if isinstance(one, Run) else Path(one) for one in runs])
    write_page(measured, Path(out), title)
    return Path(out)


def require_free(out: Path, *, force: bool) -> None:
    """Refuse a page that is a folder, or exists and is not to be overwritten."""
    if out.is_dir():
        raise OutputError(f"{out}: is a folder; expected a file such as {out / 'report.html'}")
    if out.exists() and not force:
        raise OutputError(f"{out}: already exists; choose another --out, or overwrite it with --force")


def measured_among(runs: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Folders of measured runs, and of those that were fitted on everything and have no test figure."""
    found = find_runs(list(runs))
    fitted = [one for one in found if RunFolder(one).finished and "no_test_figure" in RunFolder(one).read_result()]
    if len(fitted) == len(found):
        raise OutputError(f"{found[0]}: {NO_TEST_FIGURE}; expected measured runs")
    return [one for one in found if one not in fitted], fitted


def write_page(
    measured: Sequence[Path], out: Path, title: str, publications: Publications | None = None,
    done: Callable[[str], None] = lambda run: None,
) -> dict[str, Any]:  # fmt: skip
    """Write the page; what it says of itself."""
    model = gather(list(measured), title=title, done=done, publications=publications)
    write_text(out, render(model))
    about: dict[str, Any] = model["about"]
    return about
