"""One process at a time at work on a folder of a run or of runs; the lock goes with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ownview.base.errors import OutputError

_PATIENCE = 10.0
"""Seconds to wait for a process that is about to end: one whose parent was killed, say."""


@contextmanager
def sole_worker(
    folder: Path,
    *,
    patience: float | None = None,
    busy: str = "another process is at work there; wait for it, or stop it",
) -> Iterator[None]:
    """Hold the folder while working on it. No file is needed for it.

    Args:
        folder: that exists.
        patience: seconds to wait for another process to let go of it; a few where None.
        busy: what the error says where it does not.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + (_PATIENCE if patience is None else patience)
        while not _locked(handle):
            if time.monotonic() > deadline:
                raise OutputError(f"{folder}: {busy}")
            time.sleep(0.05)
        yield
    finally:
        os.close(handle)


def at_work(folder: Path) -> bool:
    """Whether a process is at work on the folder now; where the file system knows no locks, it may be."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Try to lock; where the file system knows no locks, go on without."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
