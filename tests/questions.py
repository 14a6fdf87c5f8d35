"""Questions made and read by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ownview.baselines.parts.central import Asked
from ownview.data.interactions import IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split, distinct
from ownview.data.timeline import Timeline

NO_ANSWER = -1
"""Among single answers: this user is not asked."""


def single(question: Question) -> IntArray:
    """[n] the one right answer of every user, `NO_ANSWER` for who is not asked."""
    assert question.single
    found = np.full(len(question.relevant), NO_ANSWER)
    found[question.users] = question.relevant.values.numpy()
    return found


def right(answers: Sequence[int] | IntArray) -> Ragged:
    """Lists of one answer at most, from [n] answers; `NO_ANSWER` for none."""
    every = np.asarray(answers)
    users = np.flatnonzero(every != NO_ANSWER)
    return Ragged.from_pairs(users, every[users], len(every))


def split_by_hand(data: Interactions, train: Ragged, validation: Sequence[int], test: Sequence[int]) -> Split:
    """A split without times: the order of training is that of its lists; validation items are hidden at test."""
    line, users = Timeline(train), np.repeat(np.arange(len(train)), train.lengths.numpy())
    both = np.concatenate([users, np.arange(len(train))]), np.concatenate([train.values.numpy(), validation])
    known = Ragged.from_distinct_pairs(*both, len(train))
    return Split(
        data,
        train,
        line,
        Question(right(validation), line, distinct(train)),
        Question(right(test), line, known),
        "none",
    )


def about(split: Split, *users: int) -> Asked:
    """Some users, or everybody, of whom is known what was trained on."""
    return Asked(torch.tensor(users) if users else torch.arange(split.num_users), split.timeline)
