"""What a command printed and how it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import pytest


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
        raise AssertionError(f"no handler received {number.name}")

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
