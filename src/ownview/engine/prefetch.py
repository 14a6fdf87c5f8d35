"""On a GPU: draw the next round's samples in parallel to the training of this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ownview.engine.recordings import QUEUES, Pool, Recorder, Repeated, queue
from ownview.engine.samples import Foreseen, Samples


@dataclass(frozen=True, eq=False)
class Attempt:
    """Samples of a wave that the host has not waited for.

    Args:
        samples: of every block.
        most: [blocks] rows that the client with most of them needs.
        room: rows that there is place for, by block.
    """

    samples: Sequence[Samples]
    most: Tensor
    room: Sequence[int]

    def fits(self) -> list[bool]:
        """By block, whether the samples are of use; the host waits until they are drawn."""
        return [rows <= room for rows, room in zip(self.most.tolist(), self.room, strict=True)]


Draw = Callable[[int | Tensor, Sequence[Tensor], Sequence[Foreseen]], Attempt]
"""A key, in a tensor [] where drawing is recorded, blocks and what is known of them -> what is drawn for them."""


class Prefetch:
    """Draws for the same clients round after round, while the round before trains.

    Drawing asks for hundreds of small kernels, which keep the host busier than the GPU. So it is recorded, and replayed
    with the round's key on a side stream. What is drawn follows from the key alone, never from when.

    Args:
        wave: the blocks.
        foreseen: of each.
        recorder: of the engine.
    """

    def __init__(self, wave: Sequence[Tensor], foreseen: Sequence[Foreseen], recorder: Recorder) -> None:
        self.wave, self.foreseen = wave, foreseen
        self.queue = queue(recorder.device, QUEUES)  # training has those below
        self.key = torch.zeros((), dtype=torch.long, device=recorder.device)
        self.repeated = Repeated(recorder, 2, Pool(recorder.device))
        self.drawn = Attempt([], self.key, [])
        self.begun: tuple[int, Tensor, torch.cuda.Event] | None = None

    def begin(self, number: int, key: int, draw: Draw) -> None:
        """Draw for round `number` on a side stream, parallel to later work of the GPU.

        Args:
            number: of the round.
            key: of its draws.
            draw: must not synchronise, and may read nothing that changes but the key. It is an argument of every call:
                stored here it would make a reference cycle, freed only by the garbage collector.
        """
        self.queue.wait_stream(torch.cuda.current_stream(self.queue.device))
        with torch.cuda.stream(self.queue):
            self.key.fill_(key)
            self.repeated(partial(self._once, draw))
            most = self.drawn.most.to("cpu", non_blocking=True)
            self.begun = number, most, self.queue.record_event()

    def _once(self, draw: Draw) -> None:
        self.drawn = draw(self.key, self.wave, self.foreseen)

    def taken(self, number: int) -> Attempt | None:
        """The prefetched samples of a round, copied for the caller; None if there are none."""
        begun, self.begun = self.begun, None
        if begun is None or begun[0] != number:
            return None
        _, most, finished = begun
        finished.synchronize()
        return Attempt([_copied(one) for one in self.drawn.samples], most, self.drawn.room)


def _copied(samples: Samples) -> Samples:
    """Copies on the caller's stream: the originals are overwritten by later draws."""
    mine: dict[str, Any] = {name: value for name, value in vars(samples).items() if isinstance(value, Tensor)}
    return replace(samples, **{name: value.clone() for name, value in mine.items()})
