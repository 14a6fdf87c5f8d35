"""`ownview render-results`: committed results into the pages that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import OutputError
from ownview.base.files import write_text
from ownview.evaluation.picture import picture
from ownview.evaluation.protocol import PROTOCOLS
from ownview.report.ledger_picture import here_against_honest, published_against_here
from ownview.studies.bench.anchors import read_anchors, with_anchors
from ownview.studies.bench.figures import Records, with_figures
from ownview.studies.bench.loose_figures import require_no_loose_figures
from ownview.studies.bench.page import page, with_tables
from ownview.studies.bench.results import ANCHORS, LEDGER, UPLOADS, document_text, read_all
from ownview.studies.ledger.lines import Line, lines, unseen_lines
from ownview.studies.ledger.noise_page import noise_lines, with_noise_tables
from ownview.studies.ledger.page import page as ledger_page
from ownview.studies.ledger.record import Record, read_record
from ownview.studies.ledger.uploads import read_uploads

NOISE_PAGES = (*(f"docs/methods/{name}.md" for name in ("pfedrec", "pfedclr", "fedem", "fedrap")), "docs/privacy.md")
"""Pages with tables of the papers' noise."""

FIGURE_PAGES = ("README.md", "docs/choose.md", "docs/published.md", "docs/evaluation.md", "docs/methods/sasrec.md")
"""Pages in which every figure has a record or a command behind it."""


def command(
    results: Annotated[Path, typer.Argument(help="Folder of what `ownview bench --record` wrote.")] = Path("results"),
    whole: Annotated[Path, typer.Option("--page", help="The page that shows everything; written anew.")] = Path(
        "docs/results.md"
    ),
    into: Annotated[
        list[Path] | None,
        typer.Option("--into", help="Files with tables between markers; may be repeated. Else docs/published.md."),
    ] = None,
    pictures: Annotated[
        Path, typer.Option("--pictures", help="Folder of the protocols' pictures; written anew.")
    ] = Path("docs/pictures"),
    ledger: Annotated[Path, typer.Option("--ledger", help="The page of every published figure; written anew.")] = Path(
        "docs/ledger.md"
    ),
    noise: Annotated[
        list[Path] | None,
        typer.Option("--noise", help="Files with tables of the papers' noise between markers; may be repeated."),
    ] = None,
    figures: Annotated[
        list[Path] | None,
        typer.Option("--figures", help="Files whose figures name the record they are from; may be repeated."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where a page is out of step.")] = False,
) -> None:
    """Put recorded results into a page of their own, and between the markers of other files."""
    documents = read_all(results)
    made = {whole: page(documents.values())}
    for path in into or [Path("docs/published.md")]:
        made[path] = with_tables(_read(path), documents, str(path))
    anchors = read_anchors(results / ANCHORS) if (results / ANCHORS).is_file() else []
    known = Records(documents)
    for path in figures or [Path(name) for name in FIGURE_PAGES if figures or Path(name).is_file()]:
        text = with_anchors(made.get(path) or _read(path), anchors, known, str(path))
        made[path] = with_figures(text, known, str(path))
        require_no_loose_figures(made[path], str(path))
    made |= {pictures / f"{name}.svg": picture(one) for name, one in PROTOCOLS.items()}
    if (results / LEDGER).is_file():
        record = read_record(results / LEDGER)
        found = lines(record, documents.values())
        made |= _ledger(results / LEDGER, ledger, pictures, record, found)
        made |= _noise(results / UPLOADS, noise or [Path(name) for name in NOISE_PAGES], found)
    stale = [path for path, text in made.items() if not path.is_file() or _read(path) != text]
    if check and stale:
        raise OutputError(f"{', '.join(map(str, stale))}: not what {results} says; run: ownview render-results")
    pictures.mkdir(parents=True, exist_ok=True)
    for path in stale:
        write_text(path, made[path])
    typer.echo(f"{len(stale)} of {len(made)} files changed")


def _ledger(path: Path, page_path: Path, pictures: Path, record: Record, found: Sequence[Line]) -> dict[Path, str]:
    """The ledger's own lines, which are made of its runs, its page and its pictures."""
    return {
        path: document_text(record.plain([one.plain() for one in found])),
        page_path: ledger_page(found, unseen_lines(record), record),
        pictures / "ledger-here.svg": published_against_here(found),
        pictures / "ledger-honest.svg": here_against_honest(found),
    }


def _noise(record: Path, pages: Sequence[Path], found: Sequence[Line]) -> dict[Path, str]:
    """Pages with what noise costs by the ledger's lines, and what it hides by the record of attacks."""
    uploads, rows = read_uploads(record), noise_lines(found)
    return {path: with_noise_tables(_read(path), rows, uploads, str(path)) for path in pages}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
