"""k-means, the same on every run and device."""

from __future__ import annotations

import torch
from torch import Tensor

_ITERATIONS = 100


def cluster(points: Tensor, count: int, key: int) -> Tensor:
    """[c] which of `count` clusters each point belongs to: Lloyd's algorithm from k-means++ centres.

    Works in float64 on the CPU. Where there are fewer distinct points than clusters, some clusters are empty.

    Args:
        points: [c, values].
        count: of clusters.
        key: for the choice of first centres.
    """
    where = points.device
    points = points.detach().double().cpu()
    centres = _first_centres(points, count, torch.Generator().manual_seed(key))
    found = torch.full((len(points),), -1)
    for _ in range(_ITERATIONS):
        nearest = torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
        if torch.equal(nearest, found):
            break
        found = nearest
        sizes = torch.zeros(count, dtype=torch.double).index_add(0, found, torch.ones(len(points)).double())
        sums = torch.zeros_like(centres).index_add(0, found, points)
        # An empty cluster keeps its centre.
        centres = torch.where(sizes[:, None] > 0, sums / sizes[:, None].clamp(min=1), centres)
    return found.to(where)


def _first_centres(points: Tensor, count: int, random: torch.Generator) -> Tensor:
    """[count, values] k-means++: each next centre is a point drawn in proportion to its squared distance so far."""
    chosen = [int(torch.randint(len(points), (1,), generator=random))]
    far = torch.full((len(points),), torch.inf, dtype=torch.double)
    for _ in range(count - 1):
        far = torch.minimum(far, (points - points[chosen[-1]]).square().sum(1))
        drawn = torch.rand((), generator=random, dtype=torch.double) * far.sum()
        place = int(torch.searchsorted(far.cumsum(0), drawn, right=True))
        chosen.append(min(place, len(points) - 1))
    return points[chosen]
