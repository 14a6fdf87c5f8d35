"""How many handshakes a server begins in a second: each costs it milliseconds of a processor, its sender nothing."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Turns at a steady rate; those of a second that was not used up may come at once, and no more.

    Args:
        rate: turns a second.
        clock: seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self.left, self.at = max(1.0, rate), clock()

    def wait(self) -> float:
        """Take a turn: seconds from now until it has come, 0 where it is there."""
        now = self.clock()
        self.left = min(max(1.0, self.rate), self.left + (now - self.at) * self.rate) - 1
        self.at = now
        return max(0.0, -self.left / self.rate)
