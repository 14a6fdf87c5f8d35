"""A small shop with titles and times, for tests of recommending."""

from __future__ import annotations

import numpy as np

from ownview.data import Interactions

USERS, ITEMS, EACH = 16, 24, 8
TITLES = {
    "i0": "Dune (Dune Chronicles #1) — Frank Herbert",
    "i1": "Dune Messiah (Dune Chronicles #2) — Frank Herbert",
    "i2": "1984 — George Orwell",
    "i3": "Matrix, The (1999)",
    "i4": "Emma — Jane Austen",
    "i5": "Emma — Alexander McCall Smith",
    "i6": "Les Misérables — Victor Hugo",
    "1984": "The Runaway Bunny — Margaret Wise Brown",
}
"""Of some items; the others are called 'Tome NUMBER'."""


def shop(*, titles: bool = True, times: bool = True) -> Interactions:
    """Every user has `EACH` of the items, one an hour, in an order of their own."""
    random = np.random.default_rng(3)
    ids = [*(f"i{item}" for item in range(ITEMS - 1)), "1984"]
    item = np.concatenate([random.choice(ITEMS, EACH, replace=False) for _ in range(USERS - 3)])
    # Three users have everything between them: whatever the draw, the shop has all items.
    item = np.concatenate([item, np.arange(3 * EACH) % ITEMS])
    named = {one: TITLES.get(one, f"Tome {one[1:]}") for one in ids}
    return Interactions.from_rows(
        "shop",
        np.repeat([f"u{user}" for user in range(USERS)], EACH).astype(object),
        np.array(ids, dtype=object)[item],
        timestamp=np.tile(np.arange(EACH) * 3600, USERS) + np.repeat(np.arange(USERS), EACH) * 60 if times else None,
        titles=named if titles else None,
    )
