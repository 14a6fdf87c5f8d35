"""How a round's clients are cut into stacks on the device at hand.

A stack takes as many steps an epoch as its busiest client has batches, and every client that is still at work at a step
costs as many rows as that one has. Few large stacks mean few launches and much padding; many small ones the reverse.
On a CPU a launch costs little, and what fits into caches counts: see `blocks.plan`. On a GPU the cut with the least
reckoned time is taken.

Times are estimated from the device's properties. Measured ones would differ between processes, and other stacks round
otherwise: a resumed run would not continue bit for bit.
"""

from __future__ import annotations

import functools
from itertools import pairwise
from math import inf

import torch
from torch import Tensor

from ownview.engine import blocks
from ownview.engine.blocks import Footprint
from ownview.engine.machine import Machine

_LAUNCHES, _LAUNCHES_COMPILED = 30, 12
"""Kernels of a step: a batch in row form, a loss, its gradient, an optimiser."""

_LAUNCH_SECONDS = 1e-6
"""Of a kernel that has little to do, replayed from a recording beside those of other stacks."""

_PASSES, _PASSES_COMPILED = 12, 9
"""How often a step reads or writes a table: scores and slopes 3 times, Adam 7 times, the rest for numbers by row; where
they are compiled, slopes are not written out."""

_ORDINARY_BANDWIDTH = 1e12
"""Bytes a second of a device that does not say."""

_FINENESS = 0.93
"""Places to cut at lie where the rows of a client are this share of those at the last place, or fewer."""


def plan(clients: Tensor, samples: Tensor, footprint: Footprint, machine: Machine, batch_size: int) -> list[Tensor]:
    """Cut clients into stacks, in each the busiest first, the stack of the least busy clients first.

    Args:
        clients: [C] positions, on the device.
        samples: [C] training samples of each, on the host.
        footprint: memory of a client.
        machine: where they train.
        batch_size: samples in a batch.
    """
    budget, most = machine.block_bytes, machine.block_clients
    if machine.device.type == "cpu":
        return blocks.plan(clients, samples, footprint, budget, most)
    order = torch.argsort(samples, descending=True, stable=True)
    falling = samples[order]
    compiled = machine.engine == "compiled"
    launches, passes = (_LAUNCHES_COMPILED, _PASSES_COMPILED) if compiled else (_LAUNCHES, _PASSES)
    row_seconds = footprint.row_bytes * passes / _bandwidth(machine.device)
    ends = cheapest_cuts(falling, footprint.num_items, batch_size, launches * _LAUNCH_SECONDS, row_seconds)
    busiest_first = clients[order.to(clients.device)]
    found: list[Tensor] = []
    for start, end in pairwise([0, *ends]):
        largest = max(1, min(most, budget // max(footprint.of(int(falling[start])), 1)))
        found += torch.split(busiest_first[start:end], largest)
    return found[::-1]


def cheapest_cuts(falling: Tensor, num_items: int, batch_size: int, step: float, row: float) -> list[int]:
    """Where stacks end, of clients by falling samples, so that an epoch takes the least time.

    An epoch of a stack takes b step + r B row: b the batches and r the rows of its busiest client, B the batches of all
    of its clients. A client with S samples has about m (1 - e^(-S/m)) rows.

    Args:
        falling: [C] samples.
        num_items: m.
        batch_size: samples in a batch.
        step: seconds of a step, for any number of clients.
        row: seconds of a row in a step.
    """
    batches = -(-falling // batch_size)
    rows = num_items * (1 - torch.exp(-falling.double() / num_items))
    places = _places(batches, rows)
    upto = [0, *batches.cumsum(0)[torch.tensor(places[1:]) - 1].tolist()]
    least, before = [0.0] + [inf] * (len(places) - 1), [0] * len(places)
    steps, width = batches[places[:-1]].tolist(), rows[places[:-1]].tolist()
    for end in range(1, len(places)):
        for start in range(end):
            cost = least[start] + steps[start] * step + width[start] * (upto[end] - upto[start]) * row
            if cost < least[end]:
                least[end], before[end] = cost, start
    ends, here = [], len(places) - 1
    while here:
        ends.append(places[here])
        here = before[here]
    return ends[::-1]


def _places(batches: Tensor, rows: Tensor) -> list[int]:
    """Where stacks may begin or end: where batches become fewer and rows have become fewer too."""
    found, last = [0], float(rows[0])
    counts, widths = batches.tolist(), rows.tolist()
    for place in range(1, len(counts)):
        narrower = widths[place] <= _FINENESS * last
        if narrower or (counts[place] < counts[place - 1] and counts[place] == 1):
            found.append(place)
            last = widths[place]
    return [*found, len(counts)]


@functools.cache
def _bandwidth(device: torch.device) -> float:
    """Bytes a second between a GPU and its memory: clock (kHz, two transfers a tick) times width of the bus (bits)."""
    about = torch.cuda.get_device_properties(device)
    clock, bus = (getattr(about, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
    return float(clock * 1e3 * 2 * bus / 8) or _ORDINARY_BANDWIDTH
