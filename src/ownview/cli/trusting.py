"""--trust, and the question where a person is there to answer it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ownview.base.shown import shown
from ownview.base.trust import Ask, trust, trust_everything
from ownview.cli.terminal import interactive


def _trusted(asked: bool) -> bool:
    if asked:
        trust_everything()
    return asked


Trust = Annotated[
    bool,
    typer.Option(
        "--trust", callback=_trusted, is_eager=True,
        help="Run Python files that a folder or a file names; without it they are asked about, or refused.",
    ),
]  # fmt: skip


def trusted_if_file(method: str | None) -> str | None:
    """For an argument that names a method: a file that is named on the command line is meant."""
    if method is not None:
        trust(method)
    return method


def trusted_files(methods: list[str] | None) -> list[str] | None:
    """The same for several, or none."""
    for method in methods or ():
        trust(method)
    return methods


def asking() -> Ask | None:
    """How to ask; None where nobody would answer."""
    return _ask if interactive() else None


def _ask(question: str) -> bool:
    sys.stderr.write(f"{shown(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
