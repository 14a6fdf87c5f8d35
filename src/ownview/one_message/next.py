"""FedNext's numbers (`methods.fednext`), in whole numbers throughout; the same in client/next.js.

With tables past_a, future and weights of 14 bits behind the point, L different items, the latest last, item i at place
s_i, and R(v) = floor(v / 2^30 + 1/2):

    pasts[(a, i), (b, j)]   R(weights[L] sum_t past_a[t - 1 - s_i] past_b[t - 1 - s_j]), t after both, up to L - 1
    follows[(a, i), j]      R(weights[L] sum_t past_a[t - 1 - s_i] future[s_j - t]), t after s_i, up to s_j

By rank Z_t [K k] = sum_s past[t - 1 - s] V[item s], rounded to whole steps, takes the place of past items; its numbers
are Z^T Z divided by 2^down, and F^T Z. Every sum is below 2^53.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.one_message.tables import BITS

Whole = npt.NDArray[np.int64]


def next_size(tables: dict[str, Any], m: int) -> int:
    """Numbers: the upper triangle of pasts, and follows."""
    wide = len(tables["past"]) * (tables.get("rank", 0) or m)
    return wide * (wide + 1) // 2 + wide * m


def next_largest(tables: dict[str, Any]) -> int:
    """The greatest size of a number that a history makes."""
    if tables.get("rank"):
        reach, most = max(sum(table) for table in tables["past"]), int(np.abs(vectors_of(tables)).max(initial=1))
        longest, later = (most * reach >> BITS) + 1, (sum(tables["future"]) >> BITS) + 1
        return int(max((longest**2 * tables["length"] >> tables["down"]) + 1, longest * later + 1))
    return int(max(weight * max(size - 1, 1) for size, weight in enumerate(tables["weights"])) >> 2) + 1


def vectors_of(tables: dict[str, Any]) -> Whole:
    """[m, k] item vectors in steps."""
    raw = np.frombuffer(base64.b64decode(tables["vectors"], validate=True), dtype="<i2")
    found: Whole = raw.astype(np.int64).reshape(-1, tables["rank"])
    return found


def next_numbers(tables: dict[str, Any], once: Whole, m: int) -> Whole:
    """[n] of different items, oldest first, `length` at most."""
    size = len(once)
    lag = np.arange(size)[:, None] - np.arange(size)
    past = [_looked_up(table, lag - 1) for table in tables["past"]]
    future = _looked_up(tables["future"], -lag)
    weight = int(tables["weights"][size])
    if tables.get("rank"):
        return _by_rank(tables, once, m, past, future, weight)
    wide = len(past) * m
    rows = np.concatenate([once + k * m for k in range(len(past))])
    scaled = np.concatenate(past, axis=1)
    made = np.zeros(next_size(tables, m), dtype=np.int64)
    first, second = np.triu_indices(len(rows))
    low, high = np.minimum(rows[first], rows[second]), np.maximum(rows[first], rows[second])
    pasts = _less(weight * (scaled.T @ scaled), 3 * BITS - 12)
    made[low * wide - low * (low - 1) // 2 + (high - low)] = pasts[first, second]
    begin = wide * (wide + 1) // 2
    made[begin + rows[:, None] * m + once] = _less(weight * (scaled.T @ future), 3 * BITS - 12)
    return made


def _by_rank(tables: dict[str, Any], once: Whole, m: int, past: list[Whole], future: Whole, weight: int) -> Whole:
    vectors, down = vectors_of(tables)[once], tables["down"] + BITS
    pasts = np.concatenate([_less(table @ vectors, BITS) for table in past], axis=1)
    wide = pasts.shape[1]
    follows = np.zeros((m, wide), dtype=np.int64)
    follows[once] = _less(_less(future.T @ pasts, BITS) * weight, BITS)
    products = _less(weight * (pasts.T @ pasts), down)
    return np.concatenate([products[np.triu_indices(wide)], follows.reshape(-1)])


def _looked_up(table: list[int], lag: Whole) -> Whole:
    """[l, l] the table at these places; 0 before it and behind it."""
    values = np.array([*table, 0], dtype=np.int64)
    found: Whole = values[np.where((lag >= 0) & (lag < len(table)), lag, len(table))]
    return found


def _less(value: Whole, bits: int) -> Whole:
    """Divided by 2^bits, halves up."""
    found: Whole = (value + (1 << bits >> 1)) >> bits
    return found
