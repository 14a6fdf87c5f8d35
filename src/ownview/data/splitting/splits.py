"""From interactions to what trains and what is asked: the latest item of every user held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ownview.base.errors import UnknownNameError
from ownview.data.interactions import IdArray, IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline, hash_of_pairs, time_order

FEWEST = 3
"""Interactions a user needs: one each to train on, validate and test."""

NO_CLOCK = "the data's times tell the order of interactions and not how much time lies between them"

RowMask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """What clients train on and what they are asked about.

    Args:
        data: users and items that take part (positions below refer to it).
        train: every user's training positives in source order; repeats stand as often as the protocol keeps them.
        timeline: `train` in time order; where nothing is known of time, in source order without times.
        validation: the question that chooses rounds and settings.
        test: the question that is asked once.
        order: what is known of the order of a user's items: "times", "rows" (the source's rows are in time order but
            have no times) or "none".
        notes: sentences a reader of the results must know (what was dropped, collapsed or guessed).
        earlier: where validation asks a model of its own, that was trained on less: the split of that model. Its `test`
            is `validation` then.
        num_new: items that no user trains on because they are new; they are the last of the catalogue.
    """

    data: Interactions
    train: Ragged
    timeline: Timeline
    validation: Question
    test: Question
    order: str = "times"
    notes: tuple[str, ...] = ()
    earlier: Split | None = None
    num_new: int = 0

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
        return distinct(self.train)

    def known_items(self) -> Ragged:
        """Distinct items each user ever interacted with, held-out ones included, ascending."""
        return Ragged.from_distinct_pairs(self.data.user, self.data.item, self.num_users)

    def items_of(self, question: Question) -> IdArray:
        """Ids of the items that a question's positions refer to, those without a training row included."""
        return self.data.items if question.unmet is None else np.concatenate([self.data.items, question.unmet])

    def users_of(self, question: Question) -> IdArray:
        """Ids of the users that a question's positions refer to."""
        return self.data.users if question.strangers is None else question.strangers

    def position_in(self, question: Question, user_id: Any) -> int:
        """Position of a user id in a question, as the source has it or as text; names the nearest when unknown."""
        if question.strangers is None:
            return self.data.position_of_user(user_id)
        place = {str(one): k for k, one in enumerate(question.strangers.tolist())}
        if str(user_id) not in place:
            raise UnknownNameError(f"user of {self.data.name} who never took part", str(user_id), place)
        return place[str(user_id)]


def leave_one_out(
    data: Interactions,
    *,
    ties: str,
    untimed: str,
    seed: int,
    knows_validation: bool = False,
    moment: str = "last item",
    hides: str = "earlier",
) -> Split:
    """Per user the latest row is the test item, the second latest the validation item, the rest trains.

    A client that does not know its validation item at test is asked for the item after the next one.

    Args:
        data: every user has at least `FEWEST` rows.
        ties: which of equally timed rows is the latest, see `time_order`.
        untimed: without timestamps "rows" takes the order of rows for time; "appearance" the order of first appearance
            of the item in the file; "random" draws the held-out items by the seeded hash.
        seed: of the hash.
        knows_validation: whether a client knows its validation item when test is asked.
        moment: "last item" where a client takes the time of its last known item for now when it is asked, "asked" where
            it knows the time of the held-out item.
        hides: what is no candidate at test: "earlier", all other items of the user, the validation item included
            whether its client knows it or not; or what its client has "known".
    """
    order, known, notes = by_time(data, ties=ties, untimed=untimed, seed=seed)
    last = data.offsets[1:] - 1
    validation_row, test_row = order[last - 1], order[last]
    trains = np.ones(len(data), dtype=bool)
    trains[validation_row] = trains[test_row] = False
    knows = trains
    if knows_validation:
        knows = trains.copy()
        knows[validation_row] = True
    asked = (validation_row, test_row) if moment == "asked" else (None, None)
    train, line = training(data, order, trains)
    had = knows if hides == "known" else ~_marked(data, test_row)
    questions = [
        Question(
            Ragged.from_pairs(data.user[row], data.item[row], data.num_users),
            line.at_its_end if mask is trains and now is None else known_by(data, order, mask, now),
            distinct_rows(data, hidden),
            when=None if data.timestamp is None else data.timestamp[row],
        )
        for row, mask, hidden, now in ((validation_row, trains, trains, asked[0]), (test_row, knows, had, asked[1]))
    ]
    return Split(data, train, line, questions[0], questions[1], known, notes)


def by_time(data: Interactions, *, ties: str, untimed: str, seed: int) -> tuple[IntArray, str, tuple[str, ...]]:
    """[r] every row by user and time; what is known of the order (see `Split.order`); and what to say of it."""
    if data.timestamp is not None:
        order = time_order(data, data.timestamp, ties=ties, seed=seed)
        return order, "times" if data.clock else "rows", () if data.clock else (NO_CLOCK,)
    if untimed == "rows":
        note = "no timestamps: the rows of the file are taken to be in time order"
        return time_order(data, data.row, ties=ties, seed=seed), "rows", (note,)
    if untimed == "appearance":
        note = "no timestamps: the order in which items first appear in the file stands for time"
        return time_order(data, data.item, ties=ties, seed=seed), "none", (note,)
    note = (
        "no timestamps: the held-out items are drawn at random (seeded); if a user's rows are in time order, give them "
        "a column timestamp that counts them (1, 2, 3, ...), or use a protocol with untimed = rows"
    )
    return time_order(data, hash_of_pairs(data, seed), ties=ties, seed=seed), "none", (note,)


def training(data: Interactions, order: IntArray, trains: RowMask) -> tuple[Ragged, Timeline]:
    """The marked rows in source order, and in time order at the moment of the latest of all of them."""
    train = Ragged.from_pairs(data.user[trains], data.item[trains], data.num_users)
    line = known_by(data, order, trains)
    if data.timestamp is None or not data.clock or not trains.any():
        return train, line
    latest = torch.full((data.num_users,), int(data.timestamp[trains].max()))
    return train, Timeline(line.items, line.times, latest)


def known_by(data: Interactions, order: IntArray, known: RowMask, asked: IntArray | None = None) -> Timeline:
    """The marked rows in time order.

    Args:
        data: r rows.
        order: [r] every row by user and time.
        known: [r] rows that are known.
        asked: [n] the rows whose time is now; None where now is the time of the last known item, 0 without any.
    """
    rows = order[known[order]]
    items = Ragged.from_pairs(data.user[rows], data.item[rows], data.num_users)
    if data.timestamp is None or not data.clock:
        return Timeline(items)
    times = items.with_values(data.timestamp[rows])
    if asked is not None:
        return Timeline(items, times, torch.from_numpy(data.timestamp[asked].copy()))
    return Timeline(items, times, Timeline(items, times).last)


def distinct(lists: Ragged) -> Ragged:
    """The same lists, each distinct and ascending."""
    user = np.repeat(np.arange(len(lists)), lists.lengths.numpy())
    return Ragged.from_distinct_pairs(user, lists.values.numpy(), len(lists))


def distinct_rows(data: Interactions, marked: RowMask) -> Ragged:
    """Every user's items in the marked rows, distinct and ascending."""
    return Ragged.from_distinct_pairs(data.user[marked], data.item[marked], data.num_users)


def _marked(data: Interactions, rows: IntArray) -> RowMask:
    mask = np.zeros(len(data), dtype=bool)
    mask[rows] = True
    return mask
