"""Titles that a person types in and no model knows: the vocabulary and the sparse rows that a page needs for them.

A typed title has the vector f_c of those terms in it that items have (`base.item_text`). It stands for the sum
sum_i a_i (item i) of the w published items, a = (K + mu I)^-1 k_c with (1 - sum a) / w added to each, K = F F^T: what
`parts.carried` does for items of a file. K is never made: conjugate gradients go through F.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import item_terms
from ownview.parts.text.carried import MU

_DIGITS = 6
"""Behind the point of a term's weight."""


def vocabulary(about: ItemTable | None, kept: Sequence[int]) -> dict[str, Any] | None:
    """For JSON; None where the text of items says nothing.

    Args:
        about: what is known of the items.
        kept: [w] positions of those that are published and were taken.

    Returns:
        terms: [t] names of the terms that a published item and one more has.
        weights: [t] of the terms.
        rows: [w] by item, places in `terms`.
        ridge: mu.
    """
    if about is None:
        return None
    every = item_terms(about)
    present = every.present[list(kept)]
    used = np.flatnonzero((np.asarray(present.sum(0)).ravel() > 0) & (every.weights > 0))
    if not len(used):
        return None
    rows = present[:, used].tocsr()
    rows.sort_indices()
    ends = rows.indptr.tolist()
    return {
        "terms": [every.names[one] for one in used.tolist()],
        "weights": np.round(every.weights[used], _DIGITS).tolist(),
        "rows": [rows.indices[begin:end].tolist() for begin, end in pairwise(ends)],
        "ridge": MU,
    }
