"""`python -m reproduction board`: the results that the board begins with, carried out, signed, and put on its page.

All results of a set are signed together. Without --key the key is made in memory, signs the set and is gone: nothing
can be added to a set afterwards, by us either, and there is no secret to keep or to lose. What ties the set to the
project is that the repository holds the public key (keys.txt), in the same revision as the files. Maintainers who keep
a key outside of the repository give its file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.files import make_folder, write_text
from ownview.runs.api import run
from ownview.studies.board import page, read_signed, sign
from ownview.studies.signing_keys import fingerprint, new_key, private_key, public_text

DATA, PROTOCOL = "goodbooks", "honest"
METHODS = ("popularity", "markov", "ease", "fednext", "fedease")
"""With their defaults, seed 0: what `make demo` compares."""
NAME, TITLE = "The Ownview maintainers", f"Board: {DATA}"
BOARD, PAGE, KEYS = Path("results/board"), Path("docs/board.html"), "keys.txt"


def command(
    key: Annotated[
        Path | None, typer.Option("--key", help="An Ed25519 private key (PEM); without, one for this set alone.")
    ] = None,
    board: Annotated[
        Path, typer.Option("--board", help="Folder of the signed files; those in it are replaced.")
    ] = BOARD,
    html: Annotated[Path, typer.Option("--page", help="The page; written anew.")] = PAGE,
) -> None:
    """Carry out the results that the board begins with, sign them, and make its page."""
    private: Any = new_key() if key is None else private_key(key)
    make_folder(board)
    with tempfile.TemporaryDirectory() as place:
        made = [run(name, DATA, protocol=PROTOCOL, out=Path(place) / name) for name in METHODS]
        for old in board.glob("*.json"):
            old.unlink()
        for one in made:
            sign(one.folder.path, private, NAME, board / f"{one.experiment.method}-{DATA}.json")
    public = public_text(private)
    write_text(
        board / KEYS, f"# Who may sign as whom: ownview board verify {BOARD} --keys {BOARD / KEYS}\n{public} {NAME}\n"
    )
    write_text(html, page([read_signed(one) for one in sorted(board.glob("*.json"))], TITLE))
    typer.echo(f"{board}: {len(METHODS)} results, signed by key {fingerprint(public)}; {html}")
