"""A client's items by their place in time: which come last, how near they are to each other, how they fade."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ownview.seam.client import Patch
from ownview.seam.training import Params

ALL = 2**31
"""More items than a history can have."""

_FADED = 37.0
"""exp(-37) is below the rounding of double precision: what has faded so far adds nothing."""

CROWDED = 8
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
    found: Tensor = _WeighedRows.apply(weights, rows, table)  # type: ignore[no-untyped-call]
    return found


class _WeighedRows(torch.autograd.Function):
    """Rows are added up as they are read: a copy of them, which indexing would make, takes three times as long.

    One client and many give the same bits.
    """

    @staticmethod
    def forward(weights: Tensor, rows: Tensor, table: Tensor) -> Tensor:
        """Of one client."""
        return _bags(weights[None], rows[None], table)[0]

    @staticmethod
    def setup_context(ctx: object, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """Scores are not trained through."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], weights: Tensor, rows: Tensor, table: Tensor
    ) -> tuple[Tensor, int]:
        """Of many clients with one table, or with one each."""
        weights, rows = (
            part.expand(info.batch_size, -1) if dim is None else part.movedim(dim, 0)
            for part, dim in zip((weights, rows), in_dims, strict=False)
        )
        if in_dims[2] is None:
            return _bags(weights, rows, table), 0
        each = zip(weights, rows, table.movedim(in_dims[2], 0), strict=True)
        return torch.stack([_bags(w[None], r[None], t)[0] for w, r, t in each]), 0


def _bags(weights: Tensor, rows: Tensor, table: Tensor) -> Tensor:
    """[B, b] of weights [B, l] and rows [B, l]."""
    count, length = rows.shape
    starts = torch.arange(count, device=rows.device) * length
    flat = weights.to(table.dtype).reshape(-1)
    return torch.nn.functional.embedding_bag(rows.reshape(-1), table, starts, mode="sum", per_sample_weights=flat)


def numbers_held(count: int, height: int, width: int) -> int:
    """By `weighed_rows` for so many rows of a table of this height and width."""
    return 2 * (height + width) + 2 * min(count, height // CROWDED)


def nearness(places: Places, tau: float) -> Tensor:
    """[l, l] exp(-|i - j| / tau) for items i and j places from the first; 1 for all pairs where tau is infinite."""
    length = len(places.mask)
    if not length:
        return places.mask[:, None] * places.mask
    apart = torch.exp(-torch.arange(length, dtype=places.mask.dtype, device=places.mask.device) / tau)
    # Row i is the window that begins at place l - 1 - i of l - 1, ..., 1, 0, 1, ..., l - 1 places apart.
    every = torch.cat([apart.flip(0), apart[1:]]).unfold(0, length, 1).flip(0)
    return (places.mask[:, None] * places.mask).mul_(every)


def column(places: Places, values: Tensor) -> Patch:
    """A number [l] an item, as a patch of one column."""
    return Patch(places.rows, places.rows.new_zeros(1), values[:, None])


def whole_rows(places: Places, values: Tensor) -> Patch:
    """Whole rows [l, b] of a client's items, as a patch."""
    return Patch(places.rows, places.rows.new_zeros(0), values)
