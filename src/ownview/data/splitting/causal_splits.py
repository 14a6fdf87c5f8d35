"""Splits at a moment: all users' rows before it train; what comes after it is asked and nothing else.

Users and items without a row before the moment are not there for the model: changing, adding or removing rows
after it changes no model and no score, only who is asked and what is right. The moment itself is given as a time, or
found as a share of all rows in time order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ownview.base.errors import DataError
from ownview.data.interactions import IdArray, IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.sittings import DAY
from ownview.data.splitting.splits import NO_CLOCK, RowMask, Split, distinct_rows, known_by, training
from ownview.data.timeline import Timeline, time_order


def moment_at(data: Interactions, share: float, protocol: str) -> int:
    """The time before which this share of all rows lies."""
    if data.timestamp is None:
        raise DataError(
            f"{data.name}: protocol {protocol} asks at a moment in time, and this data has no times; expected a column "
            "of timestamps, or another protocol: honest, or sequential where rows are in time order"
        )
    return int(np.quantile(data.timestamp, share, method="lower"))


@dataclass(frozen=True, eq=False)
class Past:
    """The data cut at a moment.

    Args:
        data: rows before it, by the users and items that have any, each in order of first appearance among these rows.
        later: positions in the source of the rows from the moment on.
        user: [l] of each later row, its user's position in `data`; -1 where that user was not there before.
        item: [l] its item's likewise; from the number of items on where that item was not there before.
        times: [l] its time.
        unmet: ids of the items that were not there before.
        last: [n] the latest time before the moment at which each user did anything, repeats included.
    """

    data: Interactions
    later: IntArray
    user: IntArray
    item: IntArray
    times: IntArray
    unmet: IdArray
    last: IntArray

    @classmethod
    def before(cls, source: Interactions, moment: int) -> Past:
        """Cut; a pair that stands repeatedly before the moment counts once, at its first row."""
        assert source.timestamp is not None
        before = source.timestamp < moment
        if not before.any():
            raise DataError(f"{source.name}: nothing happened before {moment}; expected a later moment")
        past = source.select(before).in_order_of_appearance()
        data = past.without_repeats() if past.repeated_pairs().any() else past
        later = np.flatnonzero(~before)
        user = _positions(source.users, data.users)[source.user[later]]
        known = _positions(source.items, data.items)
        unmet = np.flatnonzero(known < 0)
        known[unmet] = data.num_items + np.arange(len(unmet))
        assert past.timestamp is not None
        last = np.maximum.reduceat(past.timestamp, past.offsets[:-1])
        item = known[source.item[later]]
        return cls(data, later, user, item, source.timestamp[later], source.items[unmet], last)

    def by_time(self, ties: str, seed: int) -> IntArray:
        """[r] the rows of `data` by user and time; see `time_order`."""
        assert self.data.timestamp is not None
        return time_order(self.data, self.data.timestamp, ties=ties, seed=seed)

    def relevant(self, rows: IntArray) -> Ragged:
        """Every user's new items in some later rows (positions among these)."""
        new = rows[~self.had(rows, self.data.user, self.data.item)]
        return Ragged.from_distinct_pairs(self.user[new], self.item[new], self.data.num_users)

    def had(self, rows: IntArray, user: IntArray, item: IntArray) -> RowMask:
        """[rows] whether the pair of each of some later rows stands among other pairs."""
        span = self.data.num_items + len(self.unmet)
        return np.isin(self.user[rows] * span + self.item[rows], user * span + item)


def next_sitting(
    source: Interactions, *, moment: int, pause: int, fewest: int, relevant: str, ties: str, seed: int
) -> Split:
    """Everything before a moment trains; asked is who comes back after it and after a pause, about that sitting.

    A sitting goes on as long as a user's interactions follow each other without a pause.

    Args:
        source: with timestamps.
        moment: of the cut.
        pause: seconds; longer gaps part sittings.
        fewest: interactions before the moment that a user needs to be asked.
        relevant: "all" new items of the sitting, or the "first" alone.
        ties: which of equally timed rows is the later, see `time_order`.
        seed: of the hash that decides them.

    Returns:
        a split whose validation is its test: give it an earlier one to choose by. A client that is asked knows that a
        pause lies behind it, and not how long it was: its clock shows the moment of the cut, or a pause after its last
        interaction where that is later.
    """
    if not source.clock:
        raise DataError(
            f"{source.name}: there are no times to measure a pause by: {NO_CLOCK}; expected data with a clock"
        )
    past = Past.before(source, moment)
    data = past.data
    order, everything = past.by_time(ties, seed), np.ones(len(past.data), dtype=bool)
    train, timeline = training(data, order, everything)
    rows = _first_sitting(past, _later_by_time(source, past, ties, seed), pause)
    comes_back = data.counts[past.user[rows]] >= fewest
    rows = rows[comes_back]
    hidden = distinct_rows(data, everything)
    right = _first_new(past, rows, hidden) if relevant == "first" else past.relevant(rows)
    known = known_by(data, order, everything)
    assert known.times is not None
    now = torch.from_numpy(np.maximum(past.last + pause + 1, moment))
    question = Question(right, Timeline(known.items, known.times, now), hidden, past.unmet, _when(past, rows))
    notes = (
        f"next sitting: everything before {moment} trains; {len(question.users)} users come back after it and after a "
        f"pause of {pause / DAY:g} days, with {int(question.relevant.lengths.sum())} new items",
    )
    return Split(data, train, timeline, question, question, "times", notes)


def global_time(
    source: Interactions, *, first: int, second: int, ties: str, seed: int, knows_validation: bool = False
) -> Split:
    """Train before t1; each user's first new item in [t1, t2) validates, the first from t2 on tests.

    Args:
        source: with timestamps.
        first: t1.
        second: t2, later.
        ties: which of equally timed rows is the later, see `time_order`.
        seed: of the hash that decides them.
        knows_validation: whether a client knows what it had in [t1, t2) when test is asked.

    Users with nothing before t1 are not there; users with nothing new in a window are not asked there. The clock of who
    is asked shows t1 for validation and t2 for test.
    """
    past = Past.before(source, first)
    data = past.data
    order, everything = past.by_time(ties, seed), np.ones(len(past.data), dtype=bool)
    train, timeline = training(data, order, everything)
    later = _later_by_time(source, past, ties, seed)
    later = later[past.user[later] >= 0]
    inside = later[past.times[later] < second]
    hidden = distinct_rows(data, everything)
    known = known_by(data, order, everything)
    validation = Question(_first_new(past, inside, hidden), _at(known, first), hidden, past.unmet, _when(past, inside))
    met = inside[past.item[inside] < data.num_items]
    between = _with(hidden, past.user[met], past.item[met])
    at_test = _extended(known, past, inside) if knows_validation else known
    after = later[past.times[later] >= second]
    had = _with(hidden, past.user[inside], past.item[inside])
    test = Question(_first_new(past, after, had), _at(at_test, second), between, past.unmet, _when(past, after))
    unseen = int((past.user < 0).sum())
    notes = [f"global time: training before {first}, validation before {second}, test from there"]
    if unseen:
        notes.append(f"{unseen} of {len(past.later)} later rows are of users who had nothing before {first}: not asked")
    notes += [] if data.clock else [NO_CLOCK]
    return Split(data, train, timeline, validation, test, "times" if data.clock else "rows", tuple(notes))


def _positions(source_ids: IdArray, own_ids: IdArray) -> IntArray:
    """[source] where each id stands among one's own; -1 where it does not."""
    place = {one: k for k, one in enumerate(own_ids.tolist())}
    return np.array([place.get(one, -1) for one in source_ids.tolist()], dtype=np.int64)


def _later_by_time(source: Interactions, past: Past, ties: str, seed: int) -> IntArray:
    """[l] positions among the later rows, by user of the source and time; rows of unknown users too."""
    assert source.timestamp is not None
    order = time_order(source, source.timestamp, ties=ties, seed=seed)
    place = np.full(len(source), -1, dtype=np.int64)
    place[past.later] = np.arange(len(past.later))
    return place[order][place[order] >= 0]


def _first_sitting(past: Past, rows: IntArray, pause: int) -> IntArray:
    """Later rows that belong to the first sitting of a user who comes back after a pause; `rows` by user and time."""
    rows = rows[past.user[rows] >= 0]
    user, time = past.user[rows], past.times[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = user[1:] != user[:-1]
    previous = np.concatenate([[0], time[:-1]])
    gap = time - np.where(begins, past.last[user], previous)
    # A user's first later row counts 1 if it comes after a pause; every later pause makes another sitting.
    sitting = np.cumsum(gap > pause)
    before = np.maximum.accumulate(np.where(begins, sitting - (gap > pause), 0))
    returned = np.zeros(past.data.num_users, dtype=bool)
    returned[user[begins]] = gap[begins] > pause
    return rows[(sitting - before == 1) & returned[user]]


def _at(line: Timeline, moment: int) -> Timeline:
    """The same at a moment, or at its last item where that is later; data without a clock has none."""
    if line.times is None or line.now is None:
        return line
    return Timeline(line.items, line.times, line.now.clamp(min=moment))


def _when(past: Past, rows: IntArray) -> IntArray:
    """[n] the time of each user's first of some later rows, which are by user and time; 0 without any."""
    times = np.zeros(past.data.num_users, dtype=np.int64)
    users, first = np.unique(past.user[rows], return_index=True)
    times[users] = past.times[rows[first]]
    return times


def _first_new(past: Past, rows: IntArray, had: Ragged) -> Ragged:
    """Every user's first item in some later rows, in time order, that it did not have."""
    user = np.repeat(np.arange(len(had)), had.lengths.numpy())
    new = rows[~past.had(rows, user, had.values.numpy())]
    first = new[np.unique(past.user[new], return_index=True)[1]]
    return Ragged.from_pairs(past.user[first], past.item[first], past.data.num_users)


def _with(lists: Ragged, user: IntArray, item: IntArray) -> Ragged:
    """Distinct lists with further items."""
    mine = np.repeat(np.arange(len(lists)), lists.lengths.numpy())
    both = np.concatenate([mine, user]), np.concatenate([lists.values.numpy(), item])
    return Ragged.from_distinct_pairs(*both, len(lists))


def _extended(known: Timeline, past: Past, rows: IntArray) -> Timeline:
    """A timeline that goes on with some later rows, which are by user and time; what a user had stands once."""
    n, rows = len(known.items), rows[past.item[rows] < past.data.num_items]
    user = np.repeat(np.arange(n), known.items.lengths.numpy())
    once = np.zeros(len(rows), dtype=bool)
    once[np.unique(past.user[rows] * past.data.num_items + past.item[rows], return_index=True)[1]] = True
    new = rows[once & ~past.had(rows, user, known.items.values.numpy())]
    users = np.concatenate([user, past.user[new]])
    items = Ragged.from_pairs(users, np.concatenate([known.items.values.numpy(), past.item[new]]), n)
    if known.times is None:
        return Timeline(items)
    times = Ragged.from_pairs(users, np.concatenate([known.times.values.numpy(), past.times[new]]), n)
    return Timeline(items, times, Timeline(items, times).last)
