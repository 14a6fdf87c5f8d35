"""P values for pairs of rows, corrected for having chosen the pair by the very values it is tested on.

Of twenty rows of equal quality the luckiest looks better than the unluckiest: no single pair's test knows that it was
picked out of 190. What equal rows would show is seen by flipping signs: had a person's differences between rows the
other sign, nothing about equal rows would have changed. The largest difference that any two rows show then, over many
such flips, is what a pair must beat. A user asked several times has one sign for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray

FLIPS = 5000
"""Of all signs; p is never below half a flip of them."""

_PART = 250
"""Flips at once, to bound memory."""

_ROUNDING = 1e-9
"""Differences that are closer than this are equal."""


def p_between(values: FloatArray, best: int, *, flips: int = FLIPS, seed: int = 0) -> FloatArray:
    """P [rows, rows] of every pair of rows, were all rows equally good; 1 for a row with itself.

    With differences d_u between two rows, t = sum d_u / sqrt(sum d_u^2), whose root stays what it is under any signs.
    The p of a pair is the share of flips in which the |t| of any two rows goes beyond its own. Against the best, rows
    are taken by falling t, and only those that come no earlier, the best among them, have to be beaten; p never falls
    along the way. So of tables of equal rows about 5 in 100 have any pair with p below 0.05, however many rows there
    are, and rows that are clearly worse do not make it harder to tell the others from the best. For two rows it is the
    sign-flip test of the mean difference.

    Args:
        values: [units, rows], sums over what each unit (a person) was asked, the same units in all rows.
        best: the row with the highest mean.
        flips: of all signs.
        seed: of the signs; equal seeds give equal p.
    """
    rows = values.shape[1]
    apart = values - values.mean(axis=1, keepdims=True)
    apart = apart[np.abs(apart).max(axis=1) > _ROUNDING]
    if not len(apart):
        return np.ones((rows, rows))
    norms, totals = _norms(apart), apart.sum(axis=0)
    t = (totals[:, None] - totals) / norms
    order = [int(row) for row in np.argsort(-t[best], kind="stable") if row != best]
    reached = _largest_so_far(_flipped(apart, flips, seed), norms, [best, *reversed(order)])
    p = np.ones((rows, rows))
    for one, other in combinations(order, 2):  # all pairs have to be beaten
        p[one, other] = p[other, one] = _share_beyond(reached[order[0]], abs(t[one, other]))
    before = 0.0
    for row in order:
        before = max(before, _share_beyond(reached[row], t[best, row]))
        p[best, row] = p[row, best] = before
    return p


def holm_over_columns(columns: Sequence[Sequence[float]]) -> list[list[float]]:
    """Holm's correction for several columns whose p values are already corrected for their own rows.

    With m columns a p counts m times; a column all of whose rows are told apart asks nothing more, and leaves m - 1 for
    the others. With one p a column this is Holm's correction itself. Empty columns do not count.
    """
    order = sorted((place for place, p in enumerate(columns) if p), key=lambda place: max(columns[place]))
    adjusted = [[1.0] * len(p) for p in columns]
    finished = 0.0  # p up to which all columns before are told apart in all their rows
    for number, place in enumerate(order):
        left = len(order) - number
        for later in order[number:]:
            now = (max(finished, left * p) for p in columns[later])
            adjusted[later] = [min(pair) for pair in zip(adjusted[later], now, strict=True)]
        finished = max(finished, left * max(columns[place]))
    return adjusted


def _share_beyond(reached: FloatArray, t: float) -> float:
    """Share of flips [flips] that go beyond t, those that just reach it counted by half; ours is one of them.

    Hits have few different sums. Counting all that just reach t makes p too large by as much as there are of them.
    """
    if t < _ROUNDING:
        return 1.0
    beyond, level = int((reached > t + _ROUNDING).sum()), int((np.abs(reached - t) <= _ROUNDING).sum())
    return (beyond + (level + 1) / 2) / (len(reached) + 1)


def _norms(apart: FloatArray) -> FloatArray:
    """[rows, rows] sqrt(sum d^2); infinite for rows that differ nowhere, so that their t is 0."""
    products = apart.T @ apart
    squares = np.diag(products)
    between = squares[:, None] + squares - 2 * products
    return np.asarray(np.sqrt(np.where(between > _ROUNDING, between, np.inf)))


def _flipped(apart: FloatArray, flips: int, seed: int) -> FloatArray:
    """[flips, rows] sums over units, each unit with a random sign."""
    random = np.random.default_rng(seed)
    units, parts = len(apart), []
    for start in range(0, flips, _PART):
        number = min(_PART, flips - start) * units
        bits = np.unpackbits(np.frombuffer(random.bytes(-(-number // 8)), dtype=np.uint8), count=number)
        parts.append((2.0 * bits.reshape(-1, units) - 1) @ apart)
    return np.concatenate(parts)


def _largest_so_far(flipped: FloatArray, norms: FloatArray, rows: Sequence[int]) -> dict[int, npt.NDArray[np.float64]]:
    """By row, the largest |t| [flips] of any two rows up to and with it."""
    largest, found = np.zeros(len(flipped)), {}
    for place, row in enumerate(rows):
        for other in rows[:place]:
            largest = np.maximum(largest, np.abs(flipped[:, row] - flipped[:, other]) / norms[row, other])
        found[row] = largest
    return found
