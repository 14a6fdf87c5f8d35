"""A transport without a network: places in the coordinator's process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from ownview.deploy.transport import Answering

_MOMENT = 0.01
"""Seconds."""


class InProcess:
    """Places in this process, by name. A place that raises `ConnectionError` has no answer, as if its device was off.

    Args:
        homes: by name, what answers. Entries may come, go and be replaced between messages.
    """

    def __init__(self, homes: Mapping[str, Answering]) -> None:
        self.homes = homes
        self.waiting: list[tuple[str, bytes]] = []

    def places(self) -> Sequence[str]:
        """Names of the places that are there now."""
        return sorted(self.homes)

    def send(self, place: str, message: bytes) -> None:
        """The place answers at once, and the answer waits."""
        home = self.homes.get(place)
        if home is None:
            return
        try:
            answer = home.answer(message)
        except ConnectionError:
            return
        self.waiting.append((place, answer))

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """All answers that wait; a place may come back while nothing does."""
        if not self.waiting:
            time.sleep(min(patience, _MOMENT))
        found, self.waiting = self.waiting, []
        return found

    def close(self) -> None:
        """Forget what waits."""
        self.waiting = []
