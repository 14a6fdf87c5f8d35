"""Generated worlds of the size and shape of well-known datasets, for machines that do not have them."""

from __future__ import annotations

import numpy as np

from ownview.data.interactions import Interactions

SIZES = {
    # users, items, interactions, fewest per user
    "ml-100k-sized": (943, 1682, 100_000, 20),
    "ml-1m-sized": (6040, 3706, 1_000_209, 20),
}


def generated(name: str, seed: int = 0) -> Interactions:
    """A world of a known size; counts are met to within a percent."""
    return _world(name, *SIZES[name], seed)


def of_clients(users: int, seed: int = 0) -> Interactions:
    """A world of so many clients that are alike whatever their number: 40 interactions each on average, 2,000 items."""
    return _world(f"{users} clients", users, 2_000, 40 * users, 10, seed)


def _world(name: str, users: int, items: int, rows: int, fewest: int, seed: int) -> Interactions:
    """Log-normal activity and Zipf-like popularity."""
    random = np.random.default_rng(seed)
    activity = random.lognormal(mean=0.0, sigma=1.0, size=users)
    counts = fewest + np.floor(activity / activity.sum() * (rows - fewest * users)).astype(np.int64)
    counts = np.minimum(counts, items // 2)
    popularity = -np.log(np.arange(1, items + 1) + 10.0)
    # The largest of (log weight + Gumbel noise) are a weighted sample without replacement.
    chosen = [np.argpartition(-(popularity + random.gumbel(size=items)), count)[:count] for count in counts]
    user = np.repeat(np.arange(users), counts)
    times = random.permutation(len(user)).astype(np.int64)
    return Interactions.from_rows(name, user, np.concatenate(chosen), timestamp=times)
