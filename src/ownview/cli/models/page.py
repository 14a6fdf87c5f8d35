"""`ownview page`: a finished model as one HTML file that recommends by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.amounts import readable
from ownview.cli.display.terminal import Console
from ownview.cli.display.work import working
from ownview.cli.options import DataDir, MinPeople, NewItems
from ownview.cli.trusting import Trust

_EXPECTED = 10.0
"""Seconds that it takes for some thousands of items."""


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run, or of a deployment's server.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page.")] = Path("page.html"),
    title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "",
    megabytes: Annotated[
        float, typer.Option("--megabytes", help="The page has at most; weights that do not fit are left out.")
    ] = 5.0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing page.")] = False,
    min_people: MinPeople = 5,
    new_items: NewItems = None,
    contribute: Annotated[
        str | None,
        typer.Option(
            "--contribute", help="Address of one of two servers of shares: a panel sends where its reader asks."
        ),
    ] = None,
    data_dir: DataDir = None,
    trust: Trust = False,
) -> None:
    """Make one offline HTML page in which people pick titles and get recommendations, computed in the page itself."""
    from ownview.pages.page import page  # noqa: PLC0415 - slow to import, and help does without

    with working("packing", {str(out): _EXPECTED}) as work:
        work.begin(str(out))
        done = page(
            run,
            out,
            title=title,
            megabytes=megabytes,
            force=force,
            min_people=min_people,
            data_dir=data_dir,
            new_items=new_items,
            contribute=contribute,
        )
    console = Console(highlight=False)
    left = "" if done.kept == 1 else f", the strongest {100 * done.kept:.0f} % of its weights"
    console.print(f"{done.path}: {readable(done.bytes)}{left}; open it in a browser", soft_wrap=True, markup=False)
    console.print(done.fidelity.sentence(), soft_wrap=True, markup=False)
    for sentence in done.warnings():
        console.print(f"warning: {sentence}", soft_wrap=True, markup=False)
    for sentence in done.exposure.sentences():
        console.print(f"weights: {sentence}", soft_wrap=True, markup=False)
    for sentence in done.left_out:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
