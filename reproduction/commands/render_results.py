"""`python -m reproduction results`: committed results into the pages that show them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import OutputError
from ownview.base.files import write_text
from ownview.evaluation.named_protocols import PROTOCOLS
from ownview.evaluation.picture import picture
from ownview.studies.bench.results import ANCHORS, read_all
from ownview.studies.bench.results_page import page
from reproduction.pages.anchors import read_anchors, with_anchors
from reproduction.pages.figures import Records, with_figures
from reproduction.pages.loose_figures import require_no_loose_figures
from reproduction.pages.quoted import with_quoted
from reproduction.pages.result_tables import with_tables

STRICT_PAGES = ("README.md", "docs/choose.md", "docs/published.md", "docs/evaluation.md")
"""Pages in which every figure has a record behind it, or a command in its paragraph or in the block beside it."""

_NOT_LOOKED_AT = ("bench.md", "ledger.md", "results.md", "speed-bounds.md")
"""One shows how figures are written, two are made as a whole, the last tells of trials that no command repeats."""


def figure_pages(root: Path = Path()) -> list[Path]:
    """Pages in which every figure has a record or a command behind it: the strict ones, then all others."""
    docs = root / "docs"
    strict = [one for one in (root / name for name in STRICT_PAGES) if one.is_file()]
    others = [one for one in sorted(docs.glob("*.md")) if one.name not in _NOT_LOOKED_AT and one not in strict]
    return [*strict, *others, *sorted((docs / "methods").glob("*.md"))]


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
        made[path] = with_tables(read_page(path), documents, str(path))
    anchors = read_anchors(results / ANCHORS) if (results / ANCHORS).is_file() else []
    known = Records(documents)
    for path in figures or figure_pages():
        text = with_anchors(made.get(path) or read_page(path), anchors, known, str(path))
        made[path] = with_quoted(with_figures(text, known, str(path)), results / "trials", str(path))
        require_no_loose_figures(made[path], str(path), beside=str(path) in STRICT_PAGES)
    made |= {pictures / f"{name}.svg": picture(one) for name, one in PROTOCOLS.items()}
    changed = put_into_pages(made, f"not what {results} says; run: python -m reproduction results", check=check)
    typer.echo(f"{changed} of {len(made)} files changed")


def put_into_pages(made: Mapping[Path, str], stale: str, *, check: bool) -> int:
    """Write the files whose text differs from what was made, and say how many did.

    Args:
        made: texts by file.
        stale: what is said of files that differ, where they are only checked.
        check: change nothing.

    Raises:
        OutputError: with `check`, a file differs.
    """
    differing = [path for path, text in made.items() if not path.is_file() or read_page(path) != text]
    if check and differing:
        raise OutputError(f"{', '.join(map(str, differing))}: {stale}")
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, made[path])
    return len(differing)


def read_page(path: Path) -> str:
    """The text of a page that has to be there."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
