"""SIGINT and SIGTERM noted, so that a run can stop between two rounds."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Signals:
    """Notes SIGINT and SIGTERM instead of acting at once; a second one acts at once.

    One inside another (a run among several) begins with what the outer one has noted, and passes on what it notes: a
    signal in a run's last round does not keep the run from finishing, and ends what comes after it.
    """

    def __init__(self) -> None:
        self.received = 0
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

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = number
        if self.outer is not None:
            self.outer.received = number
