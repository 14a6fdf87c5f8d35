"""From interactions to training, validation and test: one held-out item a user in each of the last two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ownview.base.errors import DataError
from ownview.data.interactions import IntArray, Interactions
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline, hash_of_pairs, time_order

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
        history: `train` in time order, or None where nothing is known of time; read it through `timeline`.
    """

    data: Interactions
    train: Ragged
    validation: IntArray
    test: IntArray
    notes: tuple[str, ...] = ()
    history: Timeline | None = None

    @property
    def num_users(self) -> int:
        """Clients."""
        return self.data.num_users

    @property
    def num_items(self) -> int:
        """Items in the universe."""
        return self.data.num_items

    def timeline(self) -> Timeline:
        """Every user's training items, oldest first; where nothing is known of time, in source order without times."""
        return self.history or Timeline(self.train, None)

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
        ties: which of equally timed rows is the latest, see `time_order`.
        untimed: without timestamps "appearance" takes the order of first appearance of the item in the
            file for time; "random" draws the held-out items by the seeded hash.
        seed: of the hash.
    """
    notes: list[str] = []
    if data.timestamp is not None:
        clock = data.timestamp
    elif untimed == "appearance":
        clock = data.item
        notes.append("no timestamps: the order in which items first appear in the file stands for time")
    else:
        clock = hash_of_pairs(data, seed)
        notes.append("no timestamps: the held-out items are drawn at random (seeded)")
    order = time_order(data, clock, ties=ties, seed=seed)
    last = data.offsets[1:] - 1
    validation_row, test_row = order[last - 1], order[last]
    trains = np.ones(len(data), dtype=bool)
    trains[validation_row] = trains[test_row] = False
    return _assemble(data, order, trains, (data.item[validation_row], data.item[test_row]), notes)


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
    order = time_order(data, timestamp, ties="hash", seed=seed)
    time = timestamp[order]
    validation = _first_in_window(data, order, (time >= first) & (time < second))
    test = _first_in_window(data, order, time >= second)
    return _assemble(data, order, timestamp < first, (validation, test), notes)


def _times(data: Interactions) -> IntArray:
    if data.timestamp is None:
        raise DataError(f"{data.name}: a global time split needs timestamps, and this data has none")
    return data.timestamp


def _first_in_window(data: Interactions, order: IntArray, inside: npt.NDArray[np.bool_]) -> IntArray:
    held = np.full(data.num_users, NONE, dtype=np.int64)
    chosen = order[inside][::-1]  # reversed, so that the earliest row of a user is written last
    held[data.user[chosen]] = data.item[chosen]
    return held


def _assemble(
    data: Interactions,
    order: IntArray,
    trains: npt.NDArray[np.bool_],
    held_out: tuple[IntArray, IntArray],
    notes: list[str],
) -> Split:
    """The split whose training rows are the marked ones; `order` is every row by user and time."""
    train = Ragged.from_pairs(data.user[trains], data.item[trains], data.num_users)
    rows = order[trains[order]]
    times = None if data.timestamp is None else train.with_values(data.timestamp[rows])
    return Split(data, train, *held_out, tuple(notes), Timeline(train.with_values(data.item[rows]), times))
