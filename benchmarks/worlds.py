"""Generated worlds: of the size and shape of well-known datasets, and of any number of clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from ownview.data.interactions import IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline

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


_DRAWN_TOGETHER = 20_000
"""Clients whose items are drawn at once."""

_PAUSES = 0.1
"""Share of the gaps between two items that are pauses."""


def crowd(clients: int, items: int, each: int, seed: int = 0) -> Split:
    """A world in which every client has `each` distinct items by Zipf-like popularity, in a row, and all of them train.

    All that is held is one list of clients x each numbers, which training lists, timelines and exclusions share, and
    the rows of a source that is never read; no object for a client. A client's items do not depend on how many others
    there are, up to whole chunks of clients.

    Args:
        clients: n.
        items: m, at least twice `each`.
        each: items of a client.
        seed: of the draw.
    """
    shares = np.cumsum(1 / (np.arange(1, items + 1) + 10.0))
    listed = torch.empty(clients * each, dtype=torch.long)
    for first in range(0, clients, _DRAWN_TOGETHER):
        count = min(_DRAWN_TOGETHER, clients - first)
        drawn = _distinct(count, each, shares / shares[-1], np.random.default_rng([seed, first]))
        listed[first * each : (first + count) * each] = torch.from_numpy(drawn.reshape(-1))
    lists = Ragged(torch.arange(0, clients * each + 1, each), listed)
    row = np.broadcast_to(np.int64(0), clients * each)
    ids, names = np.arange(clients), np.arange(items)
    data = Interactions("crowd", ids, names, lists.offsets.numpy().copy(), listed.numpy(), row)
    nothing = Ragged(torch.zeros(clients + 1, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    question = Question(nothing, Timeline(lists), lists, open=True)
    return Split(data, lists, Timeline(lists), question, question, "rows")


def in_sittings(split: Split, seed: int = 0) -> Split:
    """A crowd whose clients take their items in an order and at times that are drawn.

    Items come a minute apart, and one gap in ten is a pause of three days. Everybody is asked within a sitting, a
    minute after the last item.

    Args:
        split: where all clients have equally many items.
        seed: of the draw.
    """
    clients, random = split.num_users, np.random.default_rng(seed)
    ordered = torch.from_numpy(random.permuted(split.train.values.reshape(clients, -1).numpy(), axis=1))
    gaps = np.where(random.random(ordered.shape) < _PAUSES, 3 * 86_400, 60)
    times = torch.from_numpy(gaps.cumsum(axis=1))
    lists = Ragged(split.train.offsets, ordered.reshape(-1))
    line = Timeline(lists, Ragged(lists.offsets, times.reshape(-1)), times[:, -1] + 60)
    question = replace(split.test, known=line)
    return Split(split.data, lists, line, question, question, "times")


def _distinct(count: int, each: int, shares: npt.NDArray[np.float64], random: np.random.Generator) -> IntArray:
    """[count, each] places by their cumulated shares, ascending in a row and none twice: those are drawn again."""
    found = np.searchsorted(shares, random.random((count, each)))
    while True:
        found.sort(axis=1)
        again = np.zeros(found.shape, dtype=bool)
        again[:, 1:] = found[:, 1:] == found[:, :-1]
        if not again.any():
            return np.minimum(found, len(shares) - 1)
        found[again] = np.searchsorted(shares, random.random(int(again.sum())))
