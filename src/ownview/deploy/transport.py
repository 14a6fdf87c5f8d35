"""What carries messages between a coordinator and its places: this is all that either needs to know of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
