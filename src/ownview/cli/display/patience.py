"""Words while a command loads: PyTorch takes seconds, on a busy machine half a minute. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


def lines_wanted() -> bool:
    """False under OWNVIEW_PROGRESS=off and with --json, for output that is kept."""
    return os.environ.get("OWNVIEW_PROGRESS", "") != "off" and "--json" not in sys.argv


_written: list[float] = []
"""When lines of progress were written."""


def tell(line: str) -> None:
    """A line of progress on stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    _written[:] = [time.monotonic()]


def until_due(every: float, first: float | None = None) -> float:
    """Seconds until the next line must come: `every` so many, whatever work they were about; `first` before any was."""
    if not _written:
        return every if first is None else first
    return max(_written[-1] + every - time.monotonic(), min(every, 0.1))


def loading(program: str, *, first: float = 2.0, every: float = 8.0) -> AbstractContextManager[None]:
    """A line on stderr while imports take longer than `first` seconds, and one more every so many."""
    return telling(lambda: f"{program}: loading", first=first, every=every)


@contextmanager
def telling(line: Callable[[], str], *, first: float | None = None, every: float = 8.0) -> Iterator[None]:
    """A line of progress whenever one is due, also while nothing moves; a thread may wake a little late."""
    over = threading.Event()

    def show() -> None:
        while not over.wait(until_due(every, first)):
            tell(line())

    teller = threading.Thread(target=show, daemon=True)
    if lines_wanted():
        teller.start()
    try:
        yield
    finally:
        over.set()
        if teller.is_alive():
            teller.join()
