"""The loss over all items of one pass over a sequence, or of two whose dropout differs, and its slopes to the scores.

Two passes are held together by R-Drop (Liang et al., "R-Drop: Regularized Dropout for Neural Networks", NeurIPS 2021):
with softmax shares p and q of their scores s and r, KL(p, q) + KL(q, p) = sum over items of (p - q)(s - r), because
shares add up to 1 in both.
"""

from __future__ import annotations

import torch
from torch import Tensor


def first_places(items: Tensor, there: Tensor, many: int) -> Tensor:
    """[m] the first place at which each item of a sequence stands; beyond all places for items that it lacks.

    Args:
        items: [W], padding behind the last.
        there: [] how many are real.
        many: m, items there are.
    """
    place = torch.arange(len(items), dtype=torch.int32, device=items.device)
    never = torch.full((many,), len(items), dtype=place.dtype, device=items.device)
    return never.scatter_reduce(0, items, torch.where(place < there, place, len(items)), "amin")


def seen(first: Tensor, place: Tensor, targets: Tensor) -> Tensor:
    """[..., m] whether an item stands at a place or before it; the item that comes next is none of these.

    Args:
        first: [..., m] of `first_places`.
        place: [...] t.
        targets: [...] the item that comes after each place.
    """
    others = torch.arange(first.shape[-1], device=first.device) != targets[..., None]
    return (first <= place[..., None]) & others


def candidates(scores: Tensor, excluded: Tensor | None) -> Tensor:
    """[..., m] the scores, -inf for items that are excluded, [..., m] or None for none."""
    return scores if excluded is None else scores.masked_fill(excluded, -torch.inf)


def shares(scores: Tensor, excluded: Tensor | None) -> Tensor:
    """[..., m] softmax of the scores of candidates; 0 for the others."""
    return torch.softmax(candidates(scores, excluded), -1)


def divergence(scores: Tensor, shares: Tensor) -> Tensor:
    """[...] KL(p, q) + KL(q, p) of two passes' shares.

    Args:
        scores: [2, ..., m], finite where an item is excluded too.
        shares: [2, ..., m] of `shares`.
    """
    return ((shares[0] - shares[1]) * (scores[0] - scores[1])).sum(-1)


def every_slope(scores: Tensor, shares: Tensor, r_drop: float) -> Tensor:
    """[K, ..., m] slopes of the mean over K passes of log sum exp, plus r_drop / 2 times `divergence`, to the scores.

    K is 1 without R-Drop and 2 with it; the arguments are those of `divergence`.
    """
    if r_drop == 0:
        return shares
    apart, between = scores[0] - scores[1], shares[0] - shares[1]
    weighed = shares * (apart - (shares * apart).sum(-1, keepdim=True))
    turned = torch.stack([between + weighed[0], -between - weighed[1]])
    return shares / 2 + r_drop / 2 * turned
