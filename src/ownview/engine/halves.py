"""Half of a client's samples, for phases that do not pass over all of them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ownview.base.randomness import bits, sort_keys
from ownview.engine.samples import Samples

_PLACE = (1 << 25) - 1
"""The low bits of a sort key hold a positive's place; no client has 33 million positives."""


def half_of(samples: Samples, part: str, group: int, key: int) -> Samples:
    """The support or the query half of every client's samples, on the same rows.

    A client's positives are put in a random order that follows from the key, the client and the positive's place; the
    first half of them, rounded up, is the support. So clients with more samples never have a smaller half, and a stack
    with the busiest first remains one.

    Args:
        samples: of a stack of clients, or of one without the client axis; every positive is followed by its negatives.
        part: support or query.
        group: a positive and its negatives.
        key: of the draw.
    """
    counts = samples.sizes // group
    supports = (counts + 1) // 2
    order = _order(samples, counts, group, key)
    kept = supports if part == "support" else counts - supports
    host = [size // group for size in samples.host_sizes]
    host_kept = [(count + 1) // 2 if part == "support" else count // 2 for count in host]
    first = torch.zeros_like(supports) if part == "support" else supports
    place = torch.arange(max(*host_kept, 1), device=order.device)
    chosen = order.gather(-1, (first[..., None] + place).clamp(max=order.shape[-1] - 1))
    members = (chosen[..., None] * group + torch.arange(group, device=order.device)).flatten(-2)
    real = (place < kept[..., None]).repeat_interleave(group, dim=-1)
    rows = torch.where(real, samples.rows.gather(-1, members), 0)
    labels = torch.where(real, samples.labels.gather(-1, members), 0.0)
    partners = samples.partners
    if partners.shape[-1]:
        partners = torch.where(real, partners.gather(-1, members), 0)
    host_sizes = tuple(one * group for one in host_kept)
    return replace(samples, rows=rows, labels=labels, sizes=kept * group, host_sizes=host_sizes, partners=partners)


def _order(samples: Samples, counts: Tensor, group: int, key: int) -> Tensor:
    """[..., P] places of a client's positives in a random order; padding stays behind."""
    place = torch.arange(samples.rows.shape[-1] // group, device=samples.rows.device)
    random = bits(key, samples.identities[..., None], place) >> 1 & ~_PLACE
    random = torch.where(place < counts[..., None], random, 1 << 62)
    return sort_keys(random | place) & _PLACE
