"""Which clients of a stack are at work at which batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ownview.seam.optimizers import Run

Each = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is written for one client -> the same for one client, or mapped over a stack of clients."""


@dataclass(frozen=True)
class Runs:
    """Clients of a stack that take equally many batches an epoch stand together, the busiest first.

    A client must never take a step on an empty batch: Adam's momentum would move it. So at batch k only the leading
    runs that still have a k-th batch are at work.

    Args:
        spans: the clients of each run; a single `...` for one client without a client axis.
        batches: of each run, falling.
    """

    spans: tuple[Run, ...]
    batches: tuple[int, ...]

    @classmethod
    def of(cls, batches: Sequence[int]) -> Runs:
        """From the number of batches of each client of a stack, which must not rise."""
        starts = [k for k in range(len(batches)) if k == 0 or batches[k] != batches[k - 1]]
        if any(batches[k] > batches[k - 1] for k in starts[1:]):
            raise ValueError("clients of a stack must come with the busiest first")
        stops = [*starts[1:], len(batches)]
        spans = tuple(slice(start, stop) for start, stop in zip(starts, stops, strict=True))
        return cls(spans, tuple(batches[k] for k in starts))

    @classmethod
    def alone(cls, batches: int) -> Runs:
        """One client without a client axis."""
        return cls((...,), (batches,))

    @property
    def each(self) -> Each:
        """Maps what is written for one client over the stack; one client alone needs no mapping."""
        return (lambda function: function) if self.spans[0] is ... else torch.vmap

    def at(self, batch: int) -> int:
        """Number of runs with a batch of this number."""
        return sum(count > batch for count in self.batches)

    def clients(self, active: int) -> Run:
        """The clients of the first `active` runs."""
        last = self.spans[active - 1]
        return slice(0, last.stop) if isinstance(last, slice) else last
