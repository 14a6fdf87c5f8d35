"""Processes at work on the folder of a server or of a place: who they are, and how to end them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from ownview.base.errors import DataError
from ownview.base.files import write_text
from ownview.base.lock import at_work, sole_worker

_FILE = "process"
_PATIENCE = 60.0


@contextmanager
def at_work_on(folder: Path) -> Iterator[None]:
    """Work on a folder alone, and say by which process."""
    with sole_worker(folder, busy="another process serves it already; see ownview deploy status"):
        write_text(folder / _FILE, str(os.getpid()))
        try:
            yield
        finally:
            (folder / _FILE).unlink(missing_ok=True)


def process_at(folder: Path) -> int | None:
    """The number of the process at work; None where there is none."""
    file = folder / _FILE
    if not at_work(folder) or not file.is_file():
        return None
    return int(file.read_text(encoding="ascii"))


def stop_process_at(folder: Path, patience: float = _PATIENCE) -> int:
    """End it, and wait until it has ended; returns its number."""
    process = process_at(folder)
    if process is None:
        raise DataError(f"{folder}: no process is at work there; see ownview deploy status")
    with suppress(ProcessLookupError):  # it may have ended this moment
        os.kill(process, signal.SIGTERM)
    until = time.monotonic() + patience
    while at_work(folder):
        if time.monotonic() > until:
            raise DataError(f"{folder}: process {process} is still at work after {patience:g} s; it may be in a round")
        time.sleep(0.05)
    return process


@contextmanager
def until_signalled() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set, so that what has begun is finished first. Main thread alone."""
    stop = threading.Event()

    def on_signal(_: int, __: FrameType | None) -> None:
        stop.set()

    before = {one: signal.signal(one, on_signal) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
