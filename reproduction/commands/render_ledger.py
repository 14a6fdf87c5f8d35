"""`python -m reproduction render`: the committed ledger and attacks into the pages that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ownview.studies.bench.results import LEDGER, UPLOADS, document_text, read_all
from reproduction.commands.render_results import put_into_pages, read_page
from reproduction.ledger.lines import Line, lines, unseen_lines
from reproduction.ledger.noise_page import noise_lines, with_noise_tables
from reproduction.ledger.page import page
from reproduction.ledger.picture import here_against_honest, published_against_here
from reproduction.ledger.record import Record, read_record
from reproduction.ledger.uploads import read_uploads

NOISE_PAGES = (*(f"docs/methods/{name}.md" for name in ("pfedrec", "pfedclr", "fedem", "fedrap")), "docs/privacy.md")
"""Pages with tables of the papers' noise."""


def command(
    results: Annotated[Path, typer.Argument(help="Folder of what `run --all --record` wrote.")] = Path("results"),
    pictures: Annotated[Path, typer.Option("--pictures", help="Folder of the ledger's pictures.")] = Path(
        "docs/pictures"
    ),
    ledger: Annotated[Path, typer.Option("--ledger", help="The page of every published figure; written anew.")] = Path(
        "docs/ledger.md"
    ),
    noise: Annotated[
        list[Path] | None,
        typer.Option("--noise", help="Files with tables of the papers' noise between markers; may be repeated."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where a page is out of step.")] = False,
) -> None:
    """Put the ledger and the attacks on uploads into their pages and pictures."""
    record = read_record(results / LEDGER)
    found = lines(record, read_all(results).values())
    made = _ledger(results / LEDGER, ledger, pictures, record, found)
    made |= _noise(results / UPLOADS, noise or [Path(name) for name in NOISE_PAGES], found)
    changed = put_into_pages(made, f"not what {results} says; run: python -m reproduction render", check=check)
    typer.echo(f"{changed} of {len(made)} files changed")


def _ledger(path: Path, page_path: Path, pictures: Path, record: Record, found: Sequence[Line]) -> dict[Path, str]:
    """The ledger's own lines, which are made of its runs, its page and its pictures."""
    return {
        path: document_text(record.plain([one.plain() for one in found])),
        page_path: page(found, unseen_lines(record), record),
        pictures / "ledger-here.svg": published_against_here(found),
        pictures / "ledger-honest.svg": here_against_honest(found),
    }


def _noise(record: Path, pages: Sequence[Path], found: Sequence[Line]) -> dict[Path, str]:
    """Pages with what noise costs by the ledger's lines, and what it hides by the record of attacks."""
    uploads, rows = read_uploads(record), noise_lines(found)
    return {path: with_noise_tables(read_page(path), rows, uploads, str(path)) for path in pages}
