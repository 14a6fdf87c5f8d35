"""What a command printed and how it ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PATIENCE = 600
"""Seconds until a process that should have ended counts as hanging: far more than the slowest machine needs."""

_KILLED = """
import importlib, os, signal, sys
from ownview.cli.main import entry

_, module, writer, name, times, *arguments = sys.argv
sys.argv = ["ownview", *arguments]
writer, left = getattr(importlib.import_module(module), writer), int(times)
write = getattr(writer, name)

def written(*given):
    global left
    result, left = write(*given), left - 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(writer, name, written)
entry()
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed, without the line breaks of a narrow page."""
        return " ".join(self.out.split())


@contextmanager
def signalled(number: signal.Signals, writer: type, name: str, times: int) -> Iterator[None]:
    """This process gets a signal when `writer.name`, which writes a line, has been called so many times.

    No waiting and no guessing: the moment is the same on every machine.
    """

    def unheard(*_: Any) -> None:
        raise AssertionError(f"nobody listened to {number.name}")

    calls, write = count(1), getattr(writer, name)

    def written(*given: Any) -> None:
        write(*given)
        if next(calls) == times:
            signal.raise_signal(number)

    before = signal.signal(number, unheard)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, name, written)
            yield
    finally:
        signal.signal(number, before)


def killed(writer: type, name: str, times: int, *arguments: str | Path) -> None:
    """A command in a process of its own, killed for good when `writer.name` has been called so many times."""
    where = (writer.__module__, writer.__name__, name, str(times))
    process = subprocess.run(
        [sys.executable, "-c", _KILLED, *where, *map(str, arguments)],
        capture_output=True, check=False, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert process.returncode == -signal.SIGKILL, process
