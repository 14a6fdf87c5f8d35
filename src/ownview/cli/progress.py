"""Progress bars with time left, on terminals only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ownview.cli.terminal import Console

Advance = Callable[[str], None]
"""Told when one more unit is done, with a few words to show."""


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar over `total` units on stderr; nothing where that is no terminal or `quiet` is set."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda words: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, words="")
        yield lambda words: bar.update(task, advance=1, words=words)
