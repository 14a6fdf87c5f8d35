"""How sure a mean over users is."""

from __future__ import annotations

import numpy as np

from ownview.data.interactions import FloatArray

DRAWS = 2000
_PART = 100
"""Draws at once, to bound memory."""


def bootstrap_interval(
    values: FloatArray, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the mean of per-user values, users drawn with replacement.

    Args:
        values: [users]; with fewer than two users the interval is the mean itself. Where a user has several values
            (seeds of a run) take the user's mean first: users are what is drawn, and values of one user are not
            independent of each other.
        level: share of the draws inside the interval.
        draws: how often users are drawn anew.
        seed: equal seeds give equal intervals.
    """
    low, high = bootstrap_intervals(values[:, None], level=level, draws=draws, seed=seed)
    return float(low[0]), float(high[0])


def bootstrap_intervals(
    values: FloatArray, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends [k] for k columns of per-user values [users, k], the same users drawn for all of them."""
    if len(values) < 2:
        return values.mean(axis=0), values.mean(axis=0)
    random = np.random.default_rng(seed)
    users = len(values)
    means = np.empty((draws, values.shape[1]))
    for start in range(0, draws, _PART):
        chosen = random.integers(users, size=(min(_PART, draws - start), users))
        rows = np.arange(len(chosen))[:, None] * users
        times = np.bincount((chosen + rows).reshape(-1), minlength=len(chosen) * users).reshape(len(chosen), users)
        means[start : start + len(chosen)] = times.astype(np.float64) @ values / users
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
