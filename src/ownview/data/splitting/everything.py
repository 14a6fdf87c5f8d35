"""Nothing held out: every interaction trains, and all users are asked for a list that cannot be measured."""

from __future__ import annotations

import numpy as np
import torch

from ownview.data.interactions import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split, by_time, training
from ownview.data.timeline import Timeline


def everything(data: Interactions, *, ties: str, untimed: str, seed: int, pause: int | None = None) -> Split:
    """Every row trains and is known; validation and test are one open question to everybody.

    Args:
        data: any number of rows a user.
        ties: which of equally timed rows is the latest, see `time_order`.
        untimed: as in `leave_one_out`.
        seed: of the hash that decides ties.
        pause: seconds. Where given, a client that is asked takes the end of the data for now, or the time so long after
            its last item where that is later; None where it takes the time of its last item.
    """
    order, known, notes = by_time(data, ties=ties, untimed=untimed, seed=seed)
    train, timeline = training(data, order, np.ones(len(data), dtype=bool))
    # What `by_time` says of held-out items is not true here: there are none.
    true_notes = tuple(note for note in notes if "held-out" not in note)
    question = Question(
        Ragged(torch.zeros(data.num_users + 1, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
        _asked_at(timeline, pause),
        Ragged.from_distinct_pairs(data.user, data.item, data.num_users),
        open=True,
    )
    return Split(data, train, timeline, question, question, known, true_notes)


def _asked_at(line: Timeline, pause: int | None) -> Timeline:
    """The same items at the moment when their clients are asked; `line.now` is the end of the data."""
    if line.times is None or line.now is None:
        return line
    return Timeline(line.items, line.times, line.last if pause is None else torch.maximum(line.now, line.last + pause))
