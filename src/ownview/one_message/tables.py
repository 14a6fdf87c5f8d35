"""What items at a distance count, as tables of whole numbers: made once, so that no machine rounds otherwise."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ownview.base.errors import SettingError

STEP = 4096
"""Steps that a pair side by side counts: 2^20 contributions then fit into 32 bits."""
MOST_HISTORY = 10_000
"""Rows of a history that a client looks at, the latest."""
BITS = 14
"""Behind the point, in FedNext's tables."""
LONGEST = 1000
"""Items that FedNext looks at: sums of so many products of three tables stay below 2^53, where JavaScript is exact."""
_LARGEST = 2**20
"""That a number of the rank form may have: 2,047 contributions can then be opened together."""


def pair_table(nearness: float) -> dict[str, Any]:
    """Steps by distance, as long as they are not 0; "beyond" is for all greater distances."""
    if math.isinf(nearness):
        return {"table": [STEP], "beyond": STEP}
    return {"table": _fading(nearness, MOST_HISTORY, STEP), "beyond": 0}


def next_tables(
    scales: Sequence[float], horizon: float, weighting: float, length: int, vectors: Any = None
) -> dict[str, Any]:
    """FedNext's: past by scale, future, and weights by how many items there are; the settings of the same names.

    Args:
        scales: places after which a past item counts 1/e; infinite: all count 1.
        horizon: likewise for later items.
        weighting: a client with L items counts (L - 1)^-weighting a position.
        length: latest items that are looked at.
        vectors: [m, k] of the items, for the form by rank; None for the full one.
    """
    if not 2 <= length <= LONGEST:
        raise SettingError(f"setting length={length}: expected 2 to {LONGEST}")
    one = 1 << BITS
    tables: dict[str, Any] = {
        "past": [[one] * length if math.isinf(tau) else _fading(tau, length, one) for tau in scales],
        "future": _fading(horizon, length, one),
        "weights": [round(one * max(size - 1, 1) ** -weighting) for size in range(length + 1)],
        "length": length,
    }
    return tables if vectors is None else tables | _by_rank(tables, np.asarray(vectors, dtype=np.float64))


def _by_rank(tables: dict[str, Any], vectors: Any) -> dict[str, Any]:
    """Item vectors as fine as sums below 2^53 allow; `unit` steps are 1, and numbers are divided by 2^down."""
    reach = max(sum(table) for table in tables["past"]) / 2**BITS
    most = math.isqrt(int(2 ** (53 - BITS - 1) / (reach**2 * tables["length"])))
    unit = most / float(np.abs(vectors).max() or 1.0)
    steps = np.rint(vectors * unit).astype("<i2")
    largest = (most * reach + 1) ** 2 * tables["length"]
    down = max(0, math.ceil(math.log2(largest / _LARGEST)))
    text = base64.b64encode(np.ascontiguousarray(steps).tobytes()).decode("ascii")
    return {"rank": vectors.shape[1], "vectors": text, "unit": unit, "down": down}


def _fading(tau: float, most: int, one: int) -> list[int]:
    found: list[int] = []
    while len(found) < most and (steps := round(one * math.exp(-len(found) / tau))):
        found.append(steps)
    return found
