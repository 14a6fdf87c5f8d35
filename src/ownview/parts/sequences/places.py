"""A client's items by their place in time: which come last, how near they are to each other, how they fade."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ownview.seam.client import Patch
from ownview.seam.training import Params

ALL = 2**31
"""More items than a history can have."""

_FADED = 37.0
"""exp(-37) is below the rounding of double precision: what has faded so far adds nothing."""

CROWDED = 24
"""Items are many where there are more than one of so many rows: one product with the whole table is faster then."""


class Places(NamedTuple):
    """The latest different items of a client, oldest first; padding stands in front, so that the last is the latest.

    rows:  [l] of each item in the tables at hand; 0 for padding
    times: [l] of each
    mask:  [l] 1 for an item, 0 for padding
    """

    rows: Tensor
    times: Tensor
    mask: Tensor


def latest(p: Params, timeline: str, most: int) -> Places:
    """At most so many of a timeline's items; one that is repeated stands at its latest place alone.

    Args:
        p: the client's values.
        timeline: name of the parameter.
        most: items; l is this or, where that is less, the length of the timeline.
    """
    rows, times, mask = (p[f"{timeline}.{part}"] for part in ("rows", "times", "mask"))
    length = len(rows)
    size = min(length, most)
    behind = _different(rows, mask).flip(0)
    ago = behind.long().cumsum(0).flip(0) - 1
    wanted = behind.flip(0) & (ago < size)
    slot = torch.where(wanted, size - 1 - ago, size)
    placed = [torch.zeros_like(part, memory_format=torch.contiguous_format) for part in (rows, times, mask)]
    spare = rows.new_zeros(1)
    found = [
        torch.cat([zero, spare.to(zero.dtype)]).scatter(0, slot, part)[:size]
        for zero, part in zip((one[:size] for one in placed), (rows, times, mask), strict=True)
    ]
    return Places(*found)


def _different(rows: Tensor, mask: Tensor) -> Tensor:
    """[L] whether an item is none of padding and does not come again later."""
    length = len(rows)
    if not length:
        return mask.bool()
    place = torch.arange(length, device=rows.device)
    ordered, origin = (torch.where(mask > 0, rows, -1) * length + place).sort()
    item = torch.div(ordered, length, rounding_mode="floor")
    last = torch.cat([item[1:] != item[:-1], torch.ones_like(item[:1], dtype=torch.bool)]) & (item >= 0)
    return torch.zeros_like(last).scatter(0, origin, last)


def faded(places: Places, tau: float) -> Tensor:
    """[l] how much each item counts now: exp(-k / tau) for the k-th latest, k from 0."""
    ago = torch.arange(len(places.mask) - 1, -1, -1, dtype=places.mask.dtype, device=places.mask.device)
    return torch.exp(-ago / tau) * places.mask


def reach(tau: float) -> int:
    """Items that have not faded for good by exp(-k / tau)."""
    return ALL if math.isinf(tau) else math.ceil(_FADED * tau) + 1


def weighed_rows(weights: Tensor, rows: Tensor, table: Tensor) -> Tensor:
    """[b] sum_j weights_j table[rows_j], for weights [l], rows [l] and a table [a, b]."""
    if CROWDED * len(rows) > len(table):
        spread = torch.zeros_like(table[:, 0]).to(weights.dtype).scatter_add(0, rows, weights)
        return spread @ table
    return weights @ table[rows]


def numbers_held(count: int, height: int, width: int) -> int:
    """By `weighed_rows` for so many rows of a table of this height and width."""
    return 2 * (height + width) + 2 * min(count, height // CROWDED) * width


def nearness(places: Places, tau: float) -> Tensor:
    """[l, l] exp(-|i - j| / tau) for items i and j places from the first; 1 for all pairs where tau is infinite."""
    place = torch.arange(len(places.mask), dtype=places.mask.dtype, device=places.mask.device)
    return torch.exp(-(place[:, None] - place).abs() / tau) * places.mask[:, None] * places.mask


def column(places: Places, values: Tensor) -> Patch:
    """A number [l] an item, as a patch of one column."""
    return Patch(places.rows, places.rows.new_zeros(1), values[:, None])


def whole_rows(places: Places, values: Tensor) -> Patch:
    """Whole rows [l, b] of a client's items, as a patch."""
    return Patch(places.rows, places.rows.new_zeros(0), values)
