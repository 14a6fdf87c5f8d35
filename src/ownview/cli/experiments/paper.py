"""`ownview paper`: a table, a figure, or the references of finished runs, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import write_whole
from ownview.evaluation.metrics import HEADLINE

FIGURES = ("curves", "activity", "bytes", "epsilon", "time")
_FORMS = {".tex": "latex", ".csv": "csv", ".md": "markdown"}


def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or folders that hold them: of a comparison, of a suite.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="x.tex, x.csv, x.md; x.svg, x.pdf; x.bib. A table in Markdown here if not given."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Any of result.json; may be repeated. HR@10 and NDCG@10 if not given."),
    ] = None,
    mine: Annotated[
        str | None, typer.Option("--mine", help="A row that is held against each other one, by paired tests.")
    ] = None,
    kind: Annotated[str, typer.Option("--figure", help=f"Of .svg and .pdf: {', '.join(FIGURES)}.")] = "curves",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Print finished runs for a paper: a table, one row against each, a figure, or BibTeX of the methods used."""
    from ownview.reports.reading import find_runs, read_run  # noqa: PLC0415 - slow to import
    from ownview.studies.paper.figures import figure  # noqa: PLC0415
    from ownview.studies.paper.references import bibtex  # noqa: PLC0415
    from ownview.studies.paper.tables import against_text, paper_table  # noqa: PLC0415

    ending = ".md" if out is None else out.suffix
    if ending not in (*_FORMS, ".svg", ".pdf", ".bib"):
        raise SettingError(f"--out {out}: expected an ending .tex, .csv, .md, .svg, .pdf or .bib")
    if out is not None and out.exists() and not force:
        raise OutputError(f"{out}: already exists; choose another --out, or overwrite it with --force")
    found = [one for one in map(read_run, find_runs(runs)) if "test" in one.result]
    if not found:
        raise OutputError(f"{runs[0]}: no run in it was measured")
    if ending in (".svg", ".pdf"):
        page = figure(found, kind, (metric or [HEADLINE[1]])[0])
        made = page.svg() if ending == ".svg" else page.pdf()
    elif ending == ".bib":
        names = [name for run in found for name in (run.experiment.method, *(one for one, _ in run.experiment.plugins))]
        made = bibtex(names).encode("utf-8")
    else:
        table = paper_table(found, metric or HEADLINE)
        text = table.text(_FORMS[ending]) if mine is None else against_text(mine, table.against(mine), _FORMS[ending])
        made = text.encode("utf-8")
    if out is None:
        typer.echo(made.decode("utf-8"), nl=False)
        return

    def write(place: Path) -> None:
        place.write_bytes(made)

    write_whole(out, write)
    typer.echo(f"{out}: {len(found)} runs")
