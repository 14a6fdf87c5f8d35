"""Messages that wait for places, and answers that wait for the coordinator.

A message stays in its place's box until it is answered, so that a place that was killed gets it again. An answer to
nothing that was asked is not taken, so a place cannot fill the server's memory. All of it happens on the thread of the
event loop but `put`, `present` and `answers`.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Letter:
    """A message with its number, which its answer has to carry."""

    number: int
    message: bytes


@dataclass
class _Box:
    owner: object
    letters: list[Letter] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Mailboxes:
    """A box for every place that is connected.

    Args:
        loop: the event loop.
        waiting: messages that wait for one place at most; the oldest goes, and the coordinator sends it again.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, waiting: int) -> None:
        self.loop, self.waiting = loop, waiting
        self.boxes: dict[str, _Box] = {}
        self.present: Sequence[str] = ()
        self.answers: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self.numbers = 0

    def put(self, place: str, message: bytes) -> None:
        """(any thread) Leave a message, unless the place is away or has it already."""
        self.loop.call_soon_threadsafe(self._put, place, message)

    def _put(self, place: str, message: bytes) -> None:
        box = self.boxes.get(place)
        if box is None or any(one.message == message for one in box.letters):
            return
        self.numbers += 1
        box.letters = [*box.letters, Letter(self.numbers, message)][-self.waiting :]
        box.changed.set()

    def open(self, place: str, owner: object) -> None:
        """The place is there, on this connection; what waits for it stays where it came on another before."""
        box = self.boxes.get(place)
        if box is None:
            self.boxes[place] = _Box(owner)
            self.present = tuple(sorted(self.boxes))
        elif box.owner is not owner:
            box.owner = owner
            box.changed.set()

    def close(self, place: str, owner: object) -> None:
        """A connection has ended; where it was the place's newest, the place is away, and its messages are lost."""
        box = self.boxes.get(place)
        if box is not None and box.owner is owner:
            del self.boxes[place]
            self.present = tuple(sorted(self.boxes))
            box.changed.set()

    async def next(self, place: str, owner: object, patience: float) -> Letter | None:
        """The oldest message that was not answered; None after `patience` seconds, or when the connection ends."""
        until = self.loop.time() + patience
        while True:
            box = self.boxes.get(place)
            if box is None or box.owner is not owner:
                return None
            if box.letters:
                return box.letters[0]
            box.changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await box.changed.wait()
            except TimeoutError:
                return None

    def asked(self, place: str, number: int) -> Letter | None:
        """The message of that number, where the place has not answered it yet."""
        box = self.boxes.get(place)
        return next((one for one in box.letters if one.number == number), None) if box is not None else None

    def answer(self, place: str, letter: Letter, answer: bytes) -> None:
        """Take an answer, once."""
        box = self.boxes.get(place)
        if box is not None and letter in box.letters:
            box.letters = [one for one in box.letters if one is not letter]
            self.answers.put((place, answer))
