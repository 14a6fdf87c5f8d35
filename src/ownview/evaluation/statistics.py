"""How sure a mean over users is."""

from __future__ import annotations

import numpy as np

from ownview.data.interactions import FloatArray


def bootstrap_interval(
    values: FloatArray, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the mean of per-user values, users drawn with replacement.

    Args:
        values: [users]; with fewer than two users the interval is the mean itself.
        level: share of the draws inside the interval.
        draws: how often users are drawn anew.
        seed: equal seeds give equal intervals.
    """
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    random = np.random.default_rng(seed)
    means = np.empty(draws)
    for start in range(0, draws, 100):  # in parts, to bound memory
        chosen = random.integers(len(values), size=(min(100, draws - start), len(values)))
        means[start : start + len(chosen)] = values[chosen].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
