"""--trust, the question at a terminal, and the Python files that the command line itself names."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from ownview.base.display.shown import shown
from ownview.base.trust import Ask, named_by_user, trust_everything
from ownview.cli.display.terminal import interactive


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


def names_a_file(method: str | None) -> str | None:
    """For an argument that is a method: a Python file that stands on the command line may run."""
    if method is not None:
        named_by_user(method)
    return method


def names_files(methods: list[str] | None) -> list[str] | None:
    """The same for several, or none."""
    for method in methods or ():
        named_by_user(method)
    return methods


def names_files_in_values(pairs: list[str] | None) -> list[str] | None:
    """For --set NAME=VALUE: a value may name files too, as in parts='mine.py,fedease'."""
    for pair in pairs or ():
        for word in re.split(r"[\s,]+", pair.partition("=")[2]):
            named_by_user(word)
    return pairs


def asking() -> Ask | None:
    """A function that asks the user; None without a terminal."""
    return _ask if interactive() else None


def _ask(question: str) -> bool:
    sys.stderr.write(f"{shown(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
