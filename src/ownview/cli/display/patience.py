"""Words while a command loads: PyTorch takes seconds, on a busy machine half a minute. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def lines_wanted() -> bool:
    """False under OWNVIEW_PROGRESS=off, for output that is kept."""
    return os.environ.get("OWNVIEW_PROGRESS", "") != "off"


@contextmanager
def loading(program: str, *, first: float = 2.0, every: float = 8.0) -> Iterator[None]:
    """A line on stderr while imports take longer than `first` seconds, and one more every so many."""
    over = threading.Event()

    def tell() -> None:
        wait = first
        while not over.wait(wait):
            sys.stderr.write(f"{program}: loading\n")
            sys.stderr.flush()
            wait = every

    teller = threading.Thread(target=tell, daemon=True)
    if lines_wanted():
        teller.start()
    try:
        yield
    finally:
        over.set()
        if teller.is_alive():
            teller.join()
