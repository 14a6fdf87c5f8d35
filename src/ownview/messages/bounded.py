"""The rule `bounded:F`: no client moves more than F times what clients usually do, in whole, in any row, or by weight.

A bound on an upload's norm alone is not enough: an honest change is spread over hundreds of rows of an item table, and
a liar puts all of it into one. So every part of an upload has a bound of its own, from the same part of the others:

    samples   at most F times the round's median
    rows      of every table, at most F times the median length of the round's rows that are not 0
    parts     every table, value and summand, by name, at most F times the median norm of the round's that are not 0

Medians stay honest while fewer than half of all clients lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ownview.messages.upload import Upload, scaled_summand, squares_of_summand, times, wide
from ownview.seam.client import Patch, Product, Sent


def bounded(uploads: list[Upload], weights: Tensor, factor: float) -> list[Upload]:
    """Uploads scaled down to the bounds.

    Args:
        uploads: all of a round.
        weights: [n] of the clients, which are bounded by their samples.
        factor: F.
    """
    rows = {name: _tables([_without_padding(one, name) for one in uploads], factor) for name in uploads[0].rows}
    whole = {name: _tables([one.whole[name] for one in uploads], factor) for name in uploads[0].whole}
    sums = {name: _bounded([one.sums[name] for one in uploads], factor) for name in uploads[0].sums}
    most = int(factor * float(torch.cat([one.samples for one in uploads]).double().median()))
    return [
        replace(
            one,
            samples=one.samples.clamp(max=max(1, most)),
            rows={name: parts[place] for name, parts in rows.items()},
            whole={name: parts[place] for name, parts in whole.items()},
            sums={name: parts[place] for name, parts in sums.items()},
        )
        for place, one in enumerate(uploads)
    ]


def _without_padding(upload: Upload, name: str) -> Tensor:
    """Changes of a table's rows [B, R, ...], padding 0."""
    return upload.rows[name] * wide(upload.touched, upload.rows[name])


def _tables(parts: Sequence[Tensor], factor: float) -> list[Tensor]:
    return [one for one in _bounded(parts, factor) if isinstance(one, Tensor)]


def _bounded(parts: Sequence[Sent], factor: float) -> list[Sent]:
    """One part of all uploads: bound its rows, then the part as a whole."""
    lengths = [_row_lengths(one) for one in parts]
    most = _most(lengths, factor)
    rows = [_scaled_rows(one, _shrink(row, most)) for one, row in zip(parts, lengths, strict=True)]
    norms = [squares_of_summand(one).sqrt() for one in rows]
    most = _most(norms, factor)
    return [scaled_summand(one, _shrink(norm, most)) for one, norm in zip(rows, norms, strict=True)]


def _row_lengths(one: Sent) -> Tensor:
    """[B, k] norms of a part's rows, of a product without writing it out; [1, 0] for values without rows."""
    if isinstance(one, Product):  # |row i of L^T R|^2 = sum of L[:, i] * (R R^T L)[:, i]
        left, right = one.left.double(), one.right.double()
        return ((right @ right.mT @ left) * left).sum(1).clamp(min=0).sqrt()
    values = one.values if isinstance(one, Patch) else one
    if values.dim() < 3:
        return torch.zeros(1, 0, dtype=torch.float64)
    lengths: Tensor = torch.linalg.vector_norm(values.flatten(2), dim=2, dtype=torch.float64)
    return lengths


def _scaled_rows(one: Sent, factors: Tensor) -> Sent:
    """A part's rows times their factors [B, k]."""
    if not factors.shape[1]:
        return one
    if isinstance(one, Patch):
        return one._replace(values=times(one.values, factors))
    if isinstance(one, Product):
        return Product(one.left * factors[:, None].to(one.left.dtype), one.right)
    return times(one, factors)


def _most(lengths: Sequence[Tensor], factor: float) -> float:
    """F times the median of all lengths that are not 0; 0 where none is."""
    flat = torch.cat([one.reshape(-1) for one in lengths])
    there = flat[flat > 0]
    return factor * float(there.median()) if len(there) else 0.0


def _shrink(lengths: Tensor, most: float) -> Tensor:
    return (most / lengths.clamp(min=1e-300)).clamp(max=1.0)
