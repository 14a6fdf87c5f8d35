"""One process at a time at work on a folder of a run or of runs; the lock goes with the process, however that ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ownview.base.errors import OutputError
from ownview.base.platforms import FolderLock

_PATIENCE = 10.0
"""Seconds to wait for a process that is about to end: one whose parent was killed, say."""


@contextmanager
def sole_worker(
    folder: Path,
    *,
    patience: float | None = None,
    busy: str = "another process is at work there; wait for it, or stop it",
) -> Iterator[None]:
    """Hold the folder while working on it; see `ownview.base.platforms` for how.

    Args:
        folder: that exists.
        patience: seconds to wait for another process to let go of it; a few where None.
        busy: what the error says where it does not.
    """
    with FolderLock(folder).opened() as lock:
        deadline = time.monotonic() + (_PATIENCE if patience is None else patience)
        while not lock.exclusive():
            if time.monotonic() > deadline:
                raise OutputError(f"{folder}: {busy}")
            time.sleep(0.05)
        yield


def at_work(folder: Path) -> bool:
    """Whether a process is at work on the folder now; where the file system knows no locks, it may be."""
    try:
        with FolderLock(folder).opened() as lock:
            return not lock.free()
    except FileNotFoundError:
        return False
