"""P values for rows against the best of them, corrected for having chosen the best by the very values it is tested on.

Of twenty rows of equal quality the luckiest looks better than the unluckiest: no single pair's test knows that it was
picked out of 190. What equal rows would show is seen by turning users round: had a user's differences between rows the
other sign, nothing about equal rows would have changed. The largest difference that any two rows show then, over many
such turns, is what the best must beat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray

FLIPS = 5000
"""Turns of all users' signs; p is never below half a turn of them."""

_PART = 250
"""Turns at once, to bound memory."""

_ROUNDING = 1e-9
"""Differences that are closer than this are equal."""


def p_against_best(values: FloatArray, best: int, *, flips: int = FLIPS, seed: int = 0) -> FloatArray:
    """P [rows] of every row against the best, were all of them equally good; 1 for the best itself.

    With differences d_u between two rows, t = sum d_u / sqrt(sum d_u^2), whose root stays what it is under any signs.
    Rows are taken by falling t against the best. The p of a row is the share of turns in which any two of the rows that
    come no earlier, the best among them, go beyond its t; it never falls along the way. So of tables of equal rows
    about 5 in 100 have any row with p below 0.05, however many rows there are, and rows that are clearly worse do not
    make it harder to tell the others apart. For two rows it is the sign-flip test of the mean difference.

    Args:
        values: [users, rows], the same users in all rows.
        best: the row with the highest mean.
        flips: turns.
        seed: of the signs; equal seeds give equal p.
    """
    apart = values - values.mean(axis=1, keepdims=True)
    apart = apart[np.abs(apart).max(axis=1) > _ROUNDING]
    if not len(apart):
        return np.ones(values.shape[1])
    norms = _norms(apart)
    totals = apart.sum(axis=0)
    t = (totals[best] - totals) / norms[best]
    order = [int(row) for row in np.argsort(-t, kind="stable") if row != best]
    turned = _turned(apart, flips, seed)
    reached = _largest_so_far(turned, norms, [best, *reversed(order)])
    p, before = np.ones(values.shape[1]), 0.0
    for row in order:
        before = max(before, _share_beyond(reached[row], t[row]))
        p[row] = before
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
    """Share of turns [flips] that go beyond t, those that just reach it counted by half; ours is one of them.

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


def _turned(apart: FloatArray, flips: int, seed: int) -> FloatArray:
    """[flips, rows] sums over users, each user with a random sign."""
    random = np.random.default_rng(seed)
    users, parts = len(apart), []
    for start in range(0, flips, _PART):
        number = min(_PART, flips - start) * users
        bits = np.unpackbits(np.frombuffer(random.bytes(-(-number // 8)), dtype=np.uint8), count=number)
        parts.append((2.0 * bits.reshape(-1, users) - 1) @ apart)
    return np.concatenate(parts)


def _largest_so_far(turned: FloatArray, norms: FloatArray, rows: Sequence[int]) -> dict[int, npt.NDArray[np.float64]]:
    """By row, the largest |t| [flips] of any two rows up to and with it."""
    largest, found = np.zeros(len(turned)), {}
    for place, row in enumerate(rows):
        for other in rows[:place]:
            largest = np.maximum(largest, np.abs(turned[:, row] - turned[:, other]) / norms[row, other])
        found[row] = largest
    return found
