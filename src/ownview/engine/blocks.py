"""Which clients train side by side: as many as memory allows, with little padding between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from ownview.seam.roles import Param, visible

_COPIES = 10
"""Live copies of a trained value at the peak of a step: value, start, gradient, two moments, temporaries."""

_WHOLE_COPIES = 6
"""Live copies of a whole table that a client has beside its own: received, own, rewritten, sent back, temporaries."""

BYTES_PER_SAMPLE = 120
"""Bytes a sample needs while samples are drawn, numbered and shuffled."""

_ALIKE = 0.6
"""Clients of a block have at least this share of the busiest one's samples: less padding, more blocks."""


class Needs(Protocol):
    """How much memory a client needs."""

    def of(self, samples: int) -> int:
        """Bytes of one client with so many samples."""


@dataclass(frozen=True)
class Footprint:
    """How much memory a client needs while it trains.

    Args:
        params: what the method declares.
        num_items: rows a table has at most.
        bytes_per_value: 4 for float32.
        dense: tables hold every item, touched or not.
    """

    params: Mapping[str, Param]
    num_items: int
    bytes_per_value: int = 4
    dense: bool = False

    def of(self, samples: int) -> int:
        """Bytes of one client with so many samples."""
        rows = self.num_items if self.dense else min(samples, self.num_items)
        per_row, alone, whole = self._values
        values = _COPIES * (per_row * rows + alone) + _WHOLE_COPIES * whole
        return values * self.bytes_per_value + samples * BYTES_PER_SAMPLE

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of all tables that a client sees."""
        return max(self._values[0], 1) * self.bytes_per_value

    @cached_property
    def _values(self) -> tuple[int, int, int]:
        """Values for each row at hand, values without rows, and values of whole tables beside personal ones."""
        seen = visible(self.params).values()
        whole = sum(prod(p.shape) * self.num_items * len(p.tables_beside) for p in self.params.values())
        return sum(prod(p.shape) for p in seen if p.rows), sum(prod(p.shape) for p in seen if not p.rows), whole


def plan(clients: Tensor, samples: Tensor, footprint: Needs, budget: int, max_clients: int) -> list[Tensor]:
    """Cut clients into blocks, in each the busiest client first, so that no block needs more than `budget` bytes.

    A block is padded to its busiest client, so clients with less than `_ALIKE` of its samples start a new block once
    there are enough in it to keep the processor busy.

    Args:
        clients: [C] positions.
        samples: [C] training samples of each, or another size that its memory follows from.
        footprint: memory of a client.
        budget: bytes for a block; a single client may need more and then stands alone.
        max_clients: in one block.
    """
    order = torch.argsort(samples, descending=True, stable=True)
    busiest_first = samples[order].cpu()
    blocks: list[Tensor] = []
    start = 0
    while start < len(order):
        window = busiest_first[start : start + max_clients]
        end = start + _together(window, footprint, budget, max_clients)
        blocks.append(clients[order[start:end]])
        start = end
    # The least busy come first: a GPU then has work in its queue while the host prepares the long block at the end.
    return blocks[::-1]


def _together(samples: Tensor, footprint: Needs, budget: int, max_clients: int) -> int:
    """How many of the next clients, by falling samples, are one block: at least 1."""
    busiest = int(samples[0])
    enough, alike = max_clients // 8, int((samples >= _ALIKE * busiest).sum())
    return max(1, min(len(samples), max(enough, alike), budget // max(footprint.of(busiest), 1)))
