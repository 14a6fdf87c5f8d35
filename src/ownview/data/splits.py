"""From interactions to training, validation and test: one held-out item a user in each of the last two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ownview.base.errors import DataError
from ownview.base.randomness import bits, derive
from ownview.data.interactions import IdArray, IntArray, Interactions
from ownview.data.ragged import Ragged

NONE = -1
"""In `validation` and `test`: this user has no such item and is not ranked."""

FEWEST = 3
"""Interactions a user needs: one each to train on, validate and test."""


@dataclass(frozen=True, eq=False)
class Split:
    """What clients train on and what they are asked about.

    Args:
        data: users and items that take part (positions below refer to it).
        train: every user's training positives in source order; repeats stand as often as the protocol keeps them.
        validation: [n] held-out item of each user, or `NONE`.
        test: [n] held-out item of each user, or `NONE`.
        notes: sentences a reader of the results must know (what was dropped, collapsed or guessed).
    """

    data: Interactions
    train: Ragged
    validation: IntArray
    test: IntArray
    notes: tuple[str, ...] = ()

    @property
    def num_users(self) -> int:
        """Clients."""
        return self.data.num_users

    @property
    def num_items(self) -> int:
        """Items in the universe."""
        return self.data.num_items

    def training_items(self) -> Ragged:
        """Distinct training items of every user, ascending."""
        lengths = self.train.lengths.numpy()
        user = np.repeat(np.arange(self.num_users), lengths)
        return Ragged.from_distinct_pairs(user, self.train.values.numpy(), self.num_users)

    def known_items(self) -> Ragged:
        """Distinct items each user ever interacted with, held-out ones included, ascending."""
        return Ragged.from_distinct_pairs(self.data.user, self.data.item, self.num_users)


def leave_one_out(data: Interactions, *, ties: str, untimed: str, seed: int) -> Split:
    """Per user the latest row is the test item, the second latest the validation item, the rest trains.

    Args:
        data: every user has at least `FEWEST` rows.
        ties: among equal timestamps "file" takes the row that comes FIRST in the file for the latest (what
            rank(method="first", ascending=False) does); "hash" decides by a seeded hash of user and item.
        untimed: without timestamps "appearance" takes the order of first appearance of the item in the
            file for time; "random" draws the held-out items by the seeded hash.
        seed: of the hash.
    """
    user = data.user
    chance = _hash_of_pairs(data, seed)
    notes: list[str] = []
    if data.timestamp is not None:
        clock = data.timestamp
    elif untimed == "appearance":
        clock = data.item
        notes.append("no timestamps: the order in which items first appear in the file stands for time")
    else:
        clock = chance
        notes.append("no timestamps: the held-out items are drawn at random (seeded)")
    breaker = -data.row if ties == "file" else chance
    order = np.lexsort((breaker, clock, user))
    last = data.offsets[1:] - 1
    return _hold_out(data, order[last - 1], order[last], notes)


def global_time(data: Interactions, *, validation_from: float, test_from: float, seed: int) -> Split:
    """Train before t1; each user's first item in [t1, t2) validates, the first from t2 on tests.

    Args:
        data: with timestamps.
        validation_from: t1 as a share of all rows in time order, such as 0.8.
        test_from: t2 likewise, above `validation_from`.
        seed: decides among equal timestamps.

    Users with nothing before t1 are dropped; users with nothing in a window are not ranked there. Items nobody
    interacted with before t1 stay in the universe: a real system would have to rank them too.
    """
    timestamp = _times(data)
    first, second = np.quantile(timestamp, [validation_from, test_from], method="lower")
    trained = np.add.reduceat(timestamp < first, data.offsets[:-1]) > 0
    if not trained.any():
        raise DataError(f"{data.name}: no user has an interaction before {first}; raise validation_from")
    dropped = int((~trained).sum())
    notes = [f"global time split: training before {first}, validation before {second}, test from there"]
    if dropped:
        notes.append(f"{dropped} users have nothing before {first} and were dropped")
        data = data.select(np.repeat(trained, data.counts))
        timestamp = _times(data)
    order = np.lexsort((_hash_of_pairs(data, seed), timestamp, data.user))
    time = timestamp[order]
    validation = _first_in_window(data, order, (time >= first) & (time < second))
    test = _first_in_window(data, order, time >= second)
    before = timestamp < first
    train = Ragged.from_pairs(data.user[before], data.item[before], data.num_users)
    return Split(data, train, validation, test, tuple(notes))


def _times(data: Interactions) -> IntArray:
    if data.timestamp is None:
        raise DataError(f"{data.name}: a global time split needs timestamps, and this data has none")
    return data.timestamp


def _first_in_window(data: Interactions, order: IntArray, inside: npt.NDArray[np.bool_]) -> IntArray:
    held = np.full(data.num_users, NONE, dtype=np.int64)
    chosen = order[inside][::-1]  # reversed, so that the earliest row of a user is written last
    held[data.user[chosen]] = data.item[chosen]
    return held


def _hold_out(data: Interactions, validation_row: IntArray, test_row: IntArray, notes: list[str]) -> Split:
    kept = np.ones(len(data), dtype=bool)
    kept[validation_row] = False
    kept[test_row] = False
    train = Ragged.from_pairs(data.user[kept], data.item[kept], data.num_users)
    return Split(data, train, data.item[validation_row], data.item[test_row], tuple(notes))


def _hash_of_pairs(data: Interactions, seed: int) -> IntArray:
    """A number for every row that depends on the ids and the seed: not on the file's order, nor on who was dropped."""
    user, item = torch.from_numpy(_hash_of_ids(data.users)), torch.from_numpy(_hash_of_ids(data.items))
    drawn = bits(derive(seed, "split"), user[torch.from_numpy(data.user)], item[torch.from_numpy(data.item.copy())])
    return drawn.numpy()


def _hash_of_ids(ids: IdArray) -> IntArray:
    return np.array([derive(0, f"id:{one}") for one in ids.tolist()], dtype=np.int64)
