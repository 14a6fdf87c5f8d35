"""What carries messages between a coordinator and its places: this is all that either needs to know of a network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

_MOMENT = 0.01
"""Seconds."""


class Transport(Protocol):
    """The coordinator's end. It knows places by name; a name is bound to a place's key here and never claimed there.

    Messages may be lost, come late or come twice: the coordinator sends again, and places answer the same again.
    """

    def places(self) -> Sequence[str]:
        """Names of the places that are connected now, ascending."""

    def send(self, place: str, message: bytes) -> None:
        """Send a message to a place; it is lost without an error where the place is not connected."""

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """Answers that came, each with the name of its place; waits for the first one at most `patience` seconds."""

    def close(self) -> None:
        """Send and receive nothing any more."""


class Answering(Protocol):
    """A place's end: everything that a place does for others is to answer a message."""

    def answer(self, message: bytes) -> bytes:
        """The answer; the same again where the same message comes again."""


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
