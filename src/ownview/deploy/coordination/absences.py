"""Places that answered wrongly or refused: they are not asked again in a round, which goes on without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable


class Absences:
    """Which place is left alone: until the round has ended or, where it cannot end without it, for a while.

    Args:
        seconds: after which a place is asked again in the same round.
        now: the time in seconds, of a clock that never goes back.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.now = seconds, now
        self._until: dict[str, float] = {}

    def begin(self, place: str) -> None:
        """From now on it is absent."""
        self._until[place] = self.now() + self.seconds

    def end(self) -> None:
        """End the round: no place is absent."""
        self._until = {}

    def present(self, places: Iterable[str]) -> list[str]:
        """Those of some places that may be asked."""
        now = self.now()
        self._until = {place: until for place, until in self._until.items() if until > now}
        return [place for place in places if place not in self._until]
