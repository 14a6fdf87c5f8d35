"""Splits at a moment, by hand: who comes back, when a sitting ends, what is new, and what a client knows by then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from ownview.base.errors import DataError
from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.sittings import DAY
from ownview.data.splitting.causal_splits import global_time, moment_at, next_sitting
from ownview.data.splitting.splits import Split

Row = tuple[str, str, float]
at_ten = partial(next_sitting, moment=10 * DAY, pause=DAY, fewest=1, relevant="all", ties="hash", seed=0)


def build(rows: Sequence[Row]) -> Interactions:
    """Times in days."""
    user, item, time = zip(*rows, strict=True)
    stamps = np.array([round(day * DAY) for day in time])
    return Interactions.from_rows("rows", np.array(user, object), np.array(item, object), timestamp=stamps)


def right(split: Split, question: Question | None = None) -> dict[str, list[str]]:
    """By id of those who are asked: what is right."""
    one = question or split.test
    ids, items = split.users_of(one), split.items_of(one)
    return {str(ids[user]): [str(items[item]) for item in one.answers(int(user))] for user in one.users}


def known(split: Split, user: str, question: Question | None = None) -> list[tuple[str, float]]:
    """A user's known items and their days."""
    line, place = (question or split.test).known, split.data.position_of_user(user)
    assert line.times is not None
    items, times = split.data.items[line.items.of(place).numpy()].tolist(), line.times.of(place).tolist()
    return [(item, time / DAY) for item, time in zip(items, times, strict=True)]


ALL = [("z", item, 0.0) for item in "pqrstuv"]
"""One user met every item long ago and never comes back."""


def test_everything_before_the_moment_trains_and_the_first_sitting_after_it_is_asked() -> None:
    rows = [*ALL, ("a", "p", 1), ("a", "q", 8.5), ("a", "r", 10), ("a", "s", 10.5), ("a", "t", 11.5), ("a", "u", 12.6)]
    split = at_ten(build(rows))
    assert right(split) == {"a": ["r", "s", "t"]}  # gaps of exactly a day hold a sitting together; 1.1 days end it
    assert known(split, "a") == [("p", 1), ("q", 8.5)]
    assert split.train.of(split.data.position_of_user("a")).tolist() == [0, 1]
    assert split.order == "times"
    assert split.validation is split.test
    assert split.notes == (
        f"next sitting: everything before {10 * DAY} trains; 1 users come back after it and after a pause of 1 days, "
        "with 3 new items",
    )


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [(9.5, 10.2, False), (9.5, 10.5, False), (9.5, 10.51, True), (1, 10, True), (9.9, 30, True)],
)
def test_who_is_still_there_at_the_moment_is_not_asked(before: float, after: float, asked: bool) -> None:
    split = at_ten(build([*ALL, ("a", "p", before), ("a", "q", after), ("a", "r", 40)]))
    assert right(split) == ({"a": ["q"]} if asked else {})


def test_who_stays_over_the_moment_is_not_asked_about_a_later_sitting() -> None:
    rows = [*ALL, ("a", "p", 9.8), ("a", "q", 10.1), ("a", "r", 20), ("b", "p", 2), ("b", "q", 20)]
    assert right(at_ten(build(rows))) == {"b": ["q"]}


def test_a_repeat_shows_that_a_user_was_there() -> None:
    """The pair counts once, at its first row; the pause is counted from what the user did last."""
    rows = [*ALL, ("a", "p", 1), ("a", "p", 9.9), ("a", "q", 10.2), ("b", "p", 1), ("b", "p", 8), ("b", "q", 10.2)]
    split = at_ten(build(rows))
    assert right(split) == {"b": ["q"]}
    assert known(split, "a") == [("p", 1)]
    assert split.test.known.now is not None
    assert int(split.test.known.now[split.data.position_of_user("a")]) == round(10.9 * DAY) + 1


def test_items_that_a_user_had_are_not_right_and_those_nobody_had_met_cannot_be_found() -> None:
    rows = [*ALL, ("a", "p", 1), ("a", "p", 11), ("a", "new", 11.1), ("a", "q", 11.2), ("a", "q", 11.3)]
    rows += [("b", "p", 1), ("b", "p", 12), ("c", "p", 1), ("c", "new", 12), ("late", "p", 12)]
    split = at_ten(build(rows))
    assert right(split) == {"a": ["q", "new"], "c": ["new"]}
    assert "new" not in split.data.items.tolist()
    assert split.data.users.tolist() == ["z", "a", "b", "c"]


def test_the_first_new_item_of_the_sitting_alone() -> None:
    rows = [*ALL, ("a", "p", 1), ("a", "p", 11), ("a", "new", 11.1), ("a", "s", 11.2), ("a", "r", 11.3)]
    assert right(at_ten(build(rows))) == {"a": ["r", "s", "new"]}  # in order of items
    assert right(at_ten(build(rows), relevant="first")) == {"a": ["new"]}
    assert right(at_ten(build([*rows[:-3], ("a", "s", 13)]), relevant="first")) == {}, "the sitting brought nothing new"


def test_who_had_too_little_before_is_not_asked_but_trains() -> None:
    rows = [*ALL, ("a", "p", 1), ("a", "q", 2), ("a", "r", 11), ("b", "p", 1), ("b", "p", 2), ("b", "r", 11)]
    split = at_ten(build(rows), fewest=2)
    assert right(split) == {"a": ["r"]}  # b had one item twice
    assert split.data.users.tolist() == ["z", "a", "b"]


def test_the_clock_of_who_is_asked_shows_a_pause_and_no_more() -> None:
    rows = [*ALL, ("a", "p", 1), ("a", "q", 50), ("b", "p", 9.5), ("b", "q", 90)]
    split = at_ten(build(rows))
    now = split.test.known.now
    assert now is not None
    assert [int(now[split.data.position_of_user(user)]) for user in "ab"] == [10 * DAY, round(10.5 * DAY) + 1]
    assert split.timeline.now is not None
    assert split.timeline.now.tolist() == [round(9.5 * DAY)] * 3, "in training it is the latest of all training"


def test_hidden_is_what_a_user_had() -> None:
    rows = [*ALL, ("a", "r", 3), ("a", "p", 1), ("a", "r", 4), ("a", "q", 20)]
    split = at_ten(build(rows))
    items, place = split.data.items, split.data.position_of_user("a")
    assert items[split.test.hidden.of(place).numpy()].tolist() == ["p", "r"]
    assert split.train.of(place).tolist() == split.test.known.items.of(place).tolist()[::-1]


def test_users_and_items_are_numbered_by_what_came_before() -> None:
    """A file that begins with later rows gives the same positions as one without them."""
    past = [("b", "q", 2), ("a", "p", 1), ("b", "p", 3)]
    late = [("late", "x", 30), ("a", "q", 20), ("b", "x", 40)]
    for rows in (past, [*late, *past], [late[0], past[0], late[1], *past[1:], late[2]]):
        split = at_ten(build(rows))
        assert (split.data.users.tolist(), split.data.items.tolist()) == (["b", "a"], ["q", "p"])
        assert split.train.values.tolist() == [0, 1, 1]


def test_a_moment_before_everything_is_an_error() -> None:
    with pytest.raises(DataError, match=f"rows: nothing happened before {10 * DAY}; expected a later moment"):
        at_ten(build([("a", "p", 10), ("a", "q", 11)]))


def test_a_moment_is_the_time_before_which_a_share_of_the_rows_lies() -> None:
    data = build([("a", f"i{day}", day) for day in range(11)])
    assert [moment_at(data, share, "time") // DAY for share in (0.1, 0.5, 0.79, 0.8)] == [1, 5, 7, 8]


IN_WINDOWS = [
    *(("z", item, 0.0) for item in "pqrstuv"),
    ("a", "p", 1), ("a", "s", 12), ("a", "q", 11), ("a", "q", 11.5), ("a", "p", 13), ("a", "r", 25), ("a", "s", 20),
    ("b", "p", 2), ("b", "q", 22), ("c", "p", 3), ("c", "q", 15), ("late", "p", 12),
]  # fmt: skip
windows = partial(global_time, first=10 * DAY, second=20 * DAY, ties="hash", seed=0)


def test_global_time_asks_for_the_first_new_item_of_each_window() -> None:
    split = windows(build(IN_WINDOWS))
    assert right(split, split.validation) == {"a": ["q"], "c": ["q"]}
    assert right(split) == {"a": ["r"], "b": ["q"]}, "a had s in the window before: it is not new"
    items, place = split.data.items, split.data.position_of_user("a")
    assert items[split.validation.hidden.of(place).numpy()].tolist() == ["p"]
    assert items[split.test.hidden.of(place).numpy()].tolist() == ["p", "q", "s"]
    assert split.notes[1] == f"1 of 9 later rows are of users who had nothing before {10 * DAY}: not asked"


def test_global_time_knows_training_alone_or_what_came_between_too() -> None:
    without, more = windows(build(IN_WINDOWS)), windows(build(IN_WINDOWS), knows_validation=True)
    for question, moment in ((without.validation, 10), (without.test, 20), (more.validation, 10)):
        assert known(without, "a", question) == [("p", 1)]
        assert question.known.now is not None
        assert (question.known.now // DAY).tolist() == [moment] * 4, "the clock shows the cut"
    assert known(more, "a") == [("p", 1), ("q", 11), ("s", 12)], "what a user had stands once"
    assert known(more, "b") == [("p", 2)]
    assert more.test.known.now is not None
    assert (more.test.known.now // DAY).tolist() == [20] * 4
    assert more.train.values.tolist() == without.train.values.tolist()
