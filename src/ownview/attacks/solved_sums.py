"""Weights of the form B = I - P / diag(P) solved back into the sums that they were made of.

P = (S + lambda I)^-1 is symmetric, S a sum over people. So B_ij P_jj = B_ji P_ii, and every pair of weights gives the
ratio of two diagonal entries of P. The strongest pairs give the whole diagonal up to one factor, in least squares of
logarithms; then P, and its inverse S + lambda I, are known up to that factor. The diagonal of S has whole numbers, the
people who had each item: the factor that makes them whole is the right one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse.linalg import cg

from ownview.attacks.guesses import Inapplicable
from ownview.parts.pairs.positive_definite import inverse

Floats = npt.NDArray[np.float64]

MOST_ITEMS = 6_000
"""Items up to which sums are solved back: a minute on two cores, and 1.5 GB."""

_PAIRS = 40
"""Strongest pairs of every item that the diagonal is fitted to."""

_SYMMETRIC = 0.2
"""Mean error of logarithms of ratios up to which weights may be of this form; rounding to a byte makes .01 of it."""

_MOST_OF_THE_LEAST = 60
"""People that the least popular items may have: the factor is searched for from 1 to so many."""

_LOOKED_AT = 1_000
"""Items, of all popularities, by which the factor is searched for."""

_STEPS_A_PERSON = 10
"""Factors tried while the most popular item's count goes up by one."""

_MOST_STEPS = 60_000

_LARGEST = 1e100
"""No sum of people is so large."""


class SolvedSums(NamedTuple):
    """What an attacker reads.

    sums:   [m, m] S, with the counts on its diagonal
    whole:  how near to whole numbers the counts are: 1 where they are exactly, about 0 for any numbers
    """

    sums: Floats
    whole: float

    @property
    def counts(self) -> Floats:
        """[m] people who had each item, before they are rounded to whole numbers."""
        return np.asarray(self.sums.diagonal())


def solved_sums(weights: Floats, regularization: float) -> SolvedSums | Inapplicable:
    """S of weights [m, m] as they were published; lambda is among the settings that models are published with."""
    if len(weights) > MOST_ITEMS:
        return Inapplicable(f"more than {MOST_ITEMS:,} items would have to be solved for")
    ridged = up_to_a_factor(weights)
    if isinstance(ridged, Inapplicable):
        return ridged
    factor, whole = _factor(ridged.diagonal(), regularization)
    return SolvedSums(factor * ridged - regularization * np.eye(len(ridged)), whole)


def up_to_a_factor(weights: Floats) -> Floats | Inapplicable:
    """[m, m] S + lambda I times a number that is not known."""
    diagonal = _diagonal(weights) if np.isfinite(weights).all() else Inapplicable("some weights are no numbers")
    if isinstance(diagonal, Inapplicable):
        return diagonal
    inverted = (np.eye(len(weights)) - weights) * diagonal
    try:
        found: Floats = inverse(lambda: torch.from_numpy((inverted + inverted.T) / 2)).numpy()
    except RuntimeError:  # of the library of linear algebra: there is no inverse
        found = np.full_like(inverted, np.nan)
    return found if np.abs(found).max() < _LARGEST else Inapplicable("the weights cannot be inverted")


def _diagonal(weights: Floats) -> Floats | Inapplicable:
    """[m] of P up to one factor, by least squares: log P_jj - log P_ii = log(B_ji / B_ij), strong pairs first."""
    m = len(weights)
    products = weights * weights.T
    strength = np.sqrt(np.where(products > 0, products, 0.0))
    count = min(_PAIRS, m - 1)
    if count < 1:
        return Inapplicable("there is one item alone")
    others = np.argpartition(-strength, count - 1, axis=1)[:, :count]
    one, other = np.repeat(np.arange(m), count), others.reshape(-1)
    strong = strength[one, other]
    one, other, strong = (part[strong > 0] for part in (one, other, strong))
    if not len(strong):
        return Inapplicable("no two items have weights for each other")
    ratios = np.log(np.abs(weights[other, one] / weights[one, other]))
    rows = np.arange(len(strong))
    signs = np.concatenate([np.ones(len(strong)), -np.ones(len(strong))])
    differences = sparse.csr_matrix((signs, (np.tile(rows, 2), np.concatenate([other, one]))), shape=(len(strong), m))
    weighed = sparse.diags(strong**2) @ differences
    normal = differences.T @ weighed
    scale = np.maximum(normal.diagonal(), 1e-300)
    # A trace of itself on the diagonal: one factor is free, and more where items have no pairs with the others.
    solved, _ = cg(
        normal + sparse.diags(1e-12 * scale), weighed.T @ ratios, rtol=1e-12, maxiter=5_000, M=sparse.diags(1 / scale)
    )
    error = np.sqrt(np.average((differences @ solved - ratios) ** 2, weights=strong**2))
    if error > _SYMMETRIC:
        return Inapplicable("the weights are not those of one symmetric matrix")
    found: Floats = np.exp(solved - solved.mean())
    return found


def _factor(diagonal: Any, regularization: float) -> tuple[float, float]:
    """The factor that makes counts whole, and how whole it makes them.

    The mean cosine of 2 pi times the counts is 1 where all are whole. The least factor among equals is taken: multiples
    of counts are whole, too. Popular items tell factors apart that differ little, so all kinds are looked at.
    """
    positive = np.sort(diagonal[diagonal > 0])
    some = positive[np.unique(np.linspace(0, len(positive) - 1, _LOOKED_AT).astype(int))]
    least = float(np.quantile(positive, 0.01))
    low, high = 0.98 * regularization / least, (regularization + _MOST_OF_THE_LEAST) / least
    steps = min(_STEPS_A_PERSON * (high - low) * some[-1], _MOST_STEPS)
    tried = np.linspace(low, high, int(steps) + 100)
    whole = np.concatenate([_wholeness(part, some, regularization) for part in np.array_split(tried, 256)])
    best = float(tried[int(np.argmax(whole > 0.98 * whole.max()))])
    step = float(tried[1] - tried[0])
    around = np.linspace(best - step, best + step, 401)
    near = _wholeness(around, positive, regularization)
    return float(around[int(np.argmax(near))]), float(near.max())


def _wholeness(factors: Floats, diagonal: Any, regularization: float) -> Floats:
    """[f] mean cosine of 2 pi (factor x diagonal - lambda)."""
    found: Floats = np.cos(2 * np.pi * (factors[:, None] * diagonal - regularization)).mean(1)
    return found
