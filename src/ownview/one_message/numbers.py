"""The numbers that a history contributes, as unsigned 32-bit whole numbers; the same in client/numbers.js."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ownview.one_message.next import next_numbers
from ownview.one_message.tables import MOST_HISTORY
from ownview.one_message.terms import Terms

Numbers = npt.NDArray[np.uint32]
_SHORTER = 1 - 2.0**-40


def summand(terms: Terms, history: Sequence[int]) -> Numbers:
    """[n] of a history of places, oldest first.

    fedease: the upper triangle, row after row, of K [m, m]: the table's entry at the distance of two different items,
    counted in places of the history without repeats (an item has its latest place).
    counts: [m] rows of each item, then [m, m] how often an item came right after another, row the earlier one.
    fednext: see `one_message.next`.
    Under a budget all numbers together are brought to the agreed norm.
    """
    rows = np.asarray(history[-MOST_HISTORY:], dtype=np.int64)
    made = _made(terms, rows)
    return made if terms.budget is None else brought(made, terms.budget.clip)


def _made(terms: Terms, rows: npt.NDArray[np.int64]) -> Numbers:
    m, made = len(terms.items), np.zeros(terms.size, dtype=np.uint32)
    if terms.method == "counts":
        np.add.at(made, rows, 1)
        np.add.at(made, m + rows[:-1] * m + rows[1:], 1)
        return made
    once = np.array(list(dict.fromkeys(reversed(rows.tolist())))[::-1], dtype=np.int64)
    if terms.next is not None:
        return next_numbers(terms.next, once[-terms.next["length"] :], m).astype(np.uint32)
    steps = np.full(max(len(once), len(terms.table)), terms.beyond, dtype=np.uint32)
    steps[: len(terms.table)] = terms.table
    first, second = np.triu_indices(len(once))
    low, high = np.minimum(once[first], once[second]), np.maximum(once[first], once[second])
    made[triangle(low, high, m)] = steps[second - first]
    return made


def brought(numbers: Numbers, clip: int) -> Numbers:
    """The same direction at a norm of `clip` at most, cut towards 0; of IEEE operations that machines round alike.

    A factor above 1 makes short ones longer: everybody counts the same, as in FedEASE's private form.
    """
    steps = signed(numbers)
    squares = int((steps * steps).sum())
    if not squares:
        return numbers
    factor = clip * _SHORTER / math.sqrt(squares)
    found: Numbers = np.trunc(steps * factor).astype(np.int64).astype(np.uint32)
    return found


def triangle(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], m: int) -> npt.NDArray[np.int64]:
    """Where the pair (low, high) of m items stands, low at most high."""
    found: npt.NDArray[np.int64] = low * m - low * (low - 1) // 2 + (high - low)
    return found


def signed(total: Numbers) -> npt.NDArray[np.int64]:
    """What a sum of 32 bits stands for: from -2^31 on, as differences may be negative."""
    found: npt.NDArray[np.int64] = total.view(np.int32).astype(np.int64)
    return found
