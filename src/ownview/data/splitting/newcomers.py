"""Users who never take part: nothing of theirs is trained on, and they are asked with their history alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ownview.base.errors import DataError
from ownview.base.randomness import derive
from ownview.data.interactions import IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import RowMask, Split, leave_one_out
from ownview.data.timeline import Timeline


def held_out_users(
    data: Interactions, *, share: float, fold: int, ties: str, untimed: str, seed: int,
    knows_validation: bool, moment: str,
) -> Split:  # fmt: skip
    """Every user's latest item held out as in `leave_one_out`; a share of the users trains nothing and alone is asked.

    Args:
        data: every user has at least `FEWEST` rows.
        share: of the users that are kept out.
        fold: from 0; folds 0, 1, ... below 1 / share keep out different users, all of them together everybody.
        ties: as in `leave_one_out`.
        untimed: as in `leave_one_out`.
        seed: of who is kept out, by a hash of the user's id, and of ties.
        knows_validation: as in `leave_one_out`.
        moment: as in `leave_one_out`.

    Items that no other user has are not there for the model, nor are they asked for.
    """
    out = _kept_out(data, share, fold, seed)
    if not out.any() or out.all():
        raise DataError(
            f"{data.name}: {int(out.sum())} of {data.num_users} users would be kept out of training; expected some and "
            "not all: change newcomers or take more data"
        )
    split = partial(leave_one_out, ties=ties, untimed=untimed, seed=seed, moment=moment)
    whole = split(data, knows_validation=knows_validation)
    members = data.select(np.repeat(~out, data.counts)).in_order_of_appearance()
    inside = split(members)
    place = {one: k for k, one in enumerate(members.items.tolist())}
    items = np.array([place.get(one, -1) for one in data.items.tolist()], dtype=np.int64)
    asked = np.flatnonzero(out)
    validation, test = (
        Question(
            _taken(question.relevant, asked, items),
            _taken_line(question.known, asked, items),
            _taken(question.hidden, asked, items, ascending=True),
            when=None if question.when is None else question.when[asked],
            strangers=data.users[asked],
        )
        for question in (whole.validation, whole.test)
    )
    note = f"{len(asked)} of {data.num_users} users never take part in training and are asked with their history alone"
    return replace(inside, validation=validation, test=test, notes=(*inside.notes, note))


def _kept_out(data: Interactions, share: float, fold: int, seed: int) -> RowMask:
    """[n] True for users of the fold: a hash of the id in [0, 1) falls into it."""
    drawn = np.array([derive(seed, f"newcomer:{one}") % 2**32 for one in data.users.tolist()]) / 2**32
    return (drawn >= fold * share) & (drawn < (fold + 1) * share)


def _taken(lists: Ragged, users: IntArray, items: IntArray, *, ascending: bool = False) -> Ragged:
    """The lists of some users in other positions of items; items without one are left out."""
    user, value = _flat(lists, users)
    there = items[value] >= 0
    make = Ragged.from_distinct_pairs if ascending else Ragged.from_pairs
    return make(user[there], items[value[there]], len(users))


def _taken_line(line: Timeline, users: IntArray, items: IntArray) -> Timeline:
    user, value = _flat(line.items, users)
    there = items[value] >= 0
    taken = Ragged.from_pairs(user[there], items[value[there]], len(users))
    if line.times is None or line.now is None:
        return Timeline(taken)
    times = _flat(line.times, users)[1][there]
    return Timeline(taken, taken.with_values(times), line.now[torch.from_numpy(users)])


def _flat(lists: Ragged, users: IntArray) -> tuple[IntArray, IntArray]:
    """Places in `users`, and values, of the lists of some users, one after the other."""
    lengths = lists.lengths.numpy()[users]
    values = [lists.of(int(user)).numpy() for user in users]
    return np.repeat(np.arange(len(users)), lengths), np.concatenate([*values, np.zeros(0, dtype=np.int64)])
