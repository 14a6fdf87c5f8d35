"""SIGINT and SIGTERM are noted, so that a run stops between two rounds, or soon if a round takes long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ownview.base.platforms import interrupts

_PATIENCE = 1.0
"""Seconds that a round in progress has to end after SIGTERM, before a supervisor kills the process."""


class CutOffError(BaseException):
    """A round outlasts the grace period after SIGTERM; raised in the middle of it."""


class Signals:
    """Notes SIGINT and SIGTERM instead of acting at once; a second one acts at once.

    One inside another (a run among several) begins with what the outer one has noted, and passes on what it notes: a
    signal in a run's last round does not keep the run from finishing, and ends what comes after it.

    Inside `round()`, SIGTERM also sets a clock: a round that has not ended when it runs out is cut off.
    """

    def __init__(self) -> None:
        self.received = 0
        self.in_round = False
        self.outer: Signals | None = None
        self.previous: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.previous[number] = signal.signal(number, self._note)
            outer = getattr(self.previous[signal.SIGINT], "__self__", None)
            if isinstance(outer, Signals):
                self.outer, self.received = outer, outer.received
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    @contextmanager
    def round(self) -> Iterator[None]:
        """For the time of one round, which raises `CutOffError` where it outlasts a SIGTERM by too much."""
        if not self.previous or not interrupts():
            yield
            return
        before = signal.signal(signal.SIGALRM, _cut_off)
        self.in_round = True
        try:
            yield
        finally:
            self.in_round = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = number
        if number == signal.SIGTERM and self.in_round:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        if self.outer is not None:
            self.outer.received = number


def _cut_off(_: int, __: FrameType | None) -> None:
    raise CutOffError
