"""What a typed title stands for, worked out densely from the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import item_terms, term_vectors


def carried_shares(about: ItemTable, kept: Sequence[int], terms: Sequence[str]) -> Any:
    """[w] a = (K + I)^-1 k_c, with (1 - sum a) / w added to each; c has those of `terms` that are in the table."""
    every = item_terms(about)
    vector = np.where(np.isin(every.names, list(terms)), every.weights, 0.0)
    items = term_vectors(about)[list(kept)].toarray()
    shares = np.linalg.solve(items @ items.T + np.eye(len(kept)), items @ vector / np.linalg.norm(vector))
    return shares + (1 - shares.sum()) / len(shares)
