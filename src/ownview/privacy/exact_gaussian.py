"""Gaussian noise rounded to whole steps, drawn exactly: round(s G) with G normal and s a power of 2.

**Why rounded.** For a whole number x, x + round(s G) = round(x + s G): made of x + s G alone. So whatever holds for
Gaussian noise of standard deviation s on whole numbers of bounded norm holds for this, in any number of dimensions,
composed or sampled: the accountant's Gaussian mechanism covers it without an allowance. What is released is a whole
number of steps, so that no digit of a floating-point number gives anything away (Mironov, CCS 2012).

**Why exactly.** Probabilities of whole numbers are those of the formula, not of a quantile rounded to 53 bits. Let
x = |G|, density proportional to e(x) = exp(-x^2 / 2).

1. [0, 16) is cut into 2^14 blocks of width 2^-10. Block b is proposed with chance W_b / 2^63; the W_b are whole
   numbers, W_b >= M e(b / 2^10), M the same for all. Walker's aliases in whole numbers do it with one table look-up: 14
   bits choose a column, 49 bits one of the two blocks that share it.
2. x = (b + f) / 2^10, f uniform in [0, 1) with as many binary digits as are ever needed.
3. It is accepted with chance p = M e(x) / W_b <= 1: U < p, U uniform in [0, 1) with as many digits as are needed. What
   is accepted has a density proportional to W_b * M e(x) / W_b, which is e(x)'s.
4. Of U 44 digits are looked at first. U is below the least p of the block, which stands in a table, but for a chance of
   8e-4: accepted, without a look at anything else. Otherwise p is bounded from both sides at the ends of what is known
   of x, in decimal arithmetic whose exponential is correctly rounded; if U lies between the bounds, more digits of f
   and U are drawn.
5. s x rounds to (t + 2^(29 - e)) >> (30 - e) with s = 2^e and t the first 34 digits of x 2^30: digits behind them
   decide nothing, because floor(y + 1/2) of y = t / 2^(30 - e) does not change when less than a whole is added to t. A
   random sign makes it round(s G): 0 comes from both sides.

**What is left.** |G| >= 16 is never drawn, which has a chance of 2 Q(16) < 2^-188. D numbers in R rounds are therefore
within R D 2^-188 of exact, which adds (1 + e^epsilon) R D 2^-188 to delta: `delta_of_tails`. No other approximation is
made; there is no floating-point number in any decision.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.privacy.entropy import Stream, Words

Whole = npt.NDArray[np.int64]

MOST = 29
"""The largest exponent e: s = 2^e."""

_COLUMN, _CUT, _INSIDE, _LEVEL = 14, 49, 20, 44
"""Bits that choose a column, that choose in it, of f that are looked at first, and of U likewise."""
_PER_UNIT = 10
"""2^10 blocks to a standard deviation."""
_BLOCKS = 2**_COLUMN
_MORE = 32
"""Bits that f and U grow by where what is known of them decides nothing."""
_DIGITS = 40
_TOGETHER = 1 << 16
"""Numbers that are drawn at once: what they need stays in a processor's caches."""


class _Table(NamedTuple):
    """By column: cut << 14 | the block above the cut; the column's own is below. By block: least p, W; and M."""

    columns: Words
    levels: Words
    weights: list[int]
    scale: int


def rounded_gaussian(stream: Stream, count: int, exponent: int) -> Whole:
    """[count] of round(2^exponent G), independent.

    Args:
        stream: of secret bits, used for nothing else.
        count: of numbers.
        exponent: e, from 0 to 29; the standard deviation is 2^e steps.
    """
    if not 0 <= exponent <= MOST:
        raise ValueError(f"a standard deviation of 2^{exponent} steps; expected an exponent from 0 to {MOST}")
    found = np.empty(count, dtype=np.int64)
    for start in range(0, count, _TOGETHER):
        missing = np.arange(start, min(start + _TOGETHER, count))
        while len(missing):
            drawn, accepted = _proposed(stream, len(missing), exponent)
            found[missing] = drawn
            missing = missing[~accepted]
    return found


def delta_of_tails(epsilon: float, rounds: int, numbers: int) -> float:
    """(1 + e^epsilon) R D 2^-188, at most 1: what it costs that no number beyond 16 standard deviations is drawn."""
    exponent = math.log(max(rounds * numbers, 1)) - 188 * math.log(2)
    return min(1.0, math.exp(min(exponent + epsilon, 0.0)) + math.exp(min(exponent, 0.0)))


def _proposed(stream: Stream, count: int, exponent: int) -> tuple[Whole, npt.NDArray[np.bool_]]:
    """[count] numbers, and which of them are accepted."""
    table = _table()
    first, second = stream.words(2 * count).reshape(2, count)
    columns = (first >> np.uint64(1)) & np.uint64(_BLOCKS - 1)
    entries = table.columns[columns]
    own = (first >> np.uint64(1 + _COLUMN)) < (entries >> np.uint64(_COLUMN))
    blocks = np.where(own, columns, entries & np.uint64(_BLOCKS - 1))
    level, inside = second >> np.uint64(_INSIDE), second & np.uint64(2**_INSIDE - 1)
    accepted = level < table.levels[blocks]
    for k in np.flatnonzero(~accepted).tolist():
        accepted[k] = _below(stream, table, int(blocks[k]), int(inside[k]), int(level[k]))
    digits = ((blocks << np.uint64(_INSIDE)) | inside).astype(np.int64)
    drop = _INSIDE + _PER_UNIT - exponent
    sizes = (digits + (1 << (drop - 1))) >> drop
    return np.where((first & np.uint64(1)).astype(bool), -sizes, sizes), accepted


def _below(stream: Stream, table: _Table, block: int, inside: int, level: int) -> bool:
    """Whether U < p, exactly; more binary digits of f and U are drawn where those known do not decide."""
    inside_bits, level_bits = _INSIDE, _LEVEL
    while True:
        with decimal.localcontext(prec=_DIGITS + inside_bits):
            hair = Decimal(10) ** -_DIGITS  # far above what any of these operations is off
            unit = Decimal(2) ** (inside_bits + _PER_UNIT)
            low = ((block << inside_bits) + inside) / unit
            high = low + 1 / unit
            above = table.scale * (-low * low / 2).exp() / table.weights[block] * (1 + hair)
            # exp(-a) >= 1 - a: from the near end of what x may be to the far end.
            below = above * (1 - (high * high - low * low) / 2) * (1 - hair) ** 2
            whole = Decimal(2) ** level_bits
            if level + 1 <= below * whole:
                return True
            if level >= above * whole:
                return False
        more = int(stream.words(1)[0])
        inside, level = inside << _MORE | more >> _MORE, level << _MORE | more & (2**_MORE - 1)
        inside_bits, level_bits = inside_bits + _MORE, level_bits + _MORE


@cache
def _table() -> _Table:
    """The proposals: of whole numbers and decimal fractions, the same on every machine."""
    with decimal.localcontext(prec=_DIGITS + 20):
        hair = Decimal(10) ** -_DIGITS
        heights = _heights()
        scale = int((2 ** (_COLUMN + _CUT) - 2 * _BLOCKS) / sum(heights[:-1]))
        weights = [int(scale * one * (1 + hair)) + 1 for one in heights[:-1]]
        weights[-1] += 2 ** (_COLUMN + _CUT) - sum(weights)  # what is left over is proposed where nothing is accepted
        levels = [
            int(scale * right * (1 - hair) / weight * 2**_LEVEL)
            for right, weight in zip(heights[1:], weights, strict=True)
        ]
    return _Table(_aliases(weights), np.array(levels, dtype=np.uint64), weights, scale)


def _heights() -> list[Decimal]:
    """[2^14 + 1] e at the ends of blocks, one from the other by e(b + 1) = e(b) q r^b, q = e(1) and r = e(1)^2.

    2^14 products of rounded products are off by less than 2^28 roundings: with 60 digits by less than 1e-51 of each.
    """
    factor = (-Decimal(1) / 2 ** (2 * _PER_UNIT + 1)).exp()
    found, between = [Decimal(1)], factor * factor
    for _ in range(_BLOCKS):
        found.append(found[-1] * factor)
        factor *= between
    return found


def _aliases(weights: list[int]) -> Words:
    """Columns of 2^49 each (Walker 1977, in whole numbers): the first part of a column is its own block's."""
    capacity, left = 2**_CUT, list(weights)
    columns = [capacity << _COLUMN | b for b in range(_BLOCKS)]
    small = [b for b in range(_BLOCKS) if left[b] < capacity]
    large = [b for b in range(_BLOCKS) if left[b] > capacity]
    while small:
        low, high = small.pop(), large[-1]
        columns[low] = left[low] << _COLUMN | high
        left[high] -= capacity - left[low]
        if left[high] <= capacity:
            large.pop()
            if left[high] < capacity:
                small.append(high)
    return np.array(columns, dtype=np.uint64)
