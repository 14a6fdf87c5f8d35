"""The latest item held out: what a client knows when it is asked, what time it takes for now, and rows for time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.splitting.splits import Split, leave_one_out

ROWS = [("a", "p", 30), ("b", "q", 1), ("a", "q", 10), ("a", "r", 40), ("b", "p", 3), ("a", "s", 20), ("b", "r", 2)]
held_out = partial(leave_one_out, ties="hash", untimed="random", seed=0)


def build(rows: list[tuple[str, str, int]], timed: bool = True) -> Interactions:
    user, item, time = zip(*rows, strict=True)
    stamps = np.array(time) if timed else None
    return Interactions.from_rows("rows", np.array(user, object), np.array(item, object), timestamp=stamps)


def lists(split: Split, question: Question) -> list[list[list[str]]]:
    """Of both users: what is known, right and hidden."""
    items = split.data.items
    every = (question.known.items, question.relevant, question.hidden)
    return [[items[one.of(user).numpy()].tolist() for one in every] for user in (0, 1)]


def now(question: Question) -> list[int]:
    assert question.known.now is not None
    return [int(one) for one in question.known.now]


def test_a_client_knows_training_alone() -> None:
    split = held_out(build(ROWS))
    assert lists(split, split.validation) == [[["q", "s"], ["p"], ["q", "s"]], [["q"], ["r"], ["q"]]]
    assert lists(split, split.test) == [[["q", "s"], ["r"], ["p", "q", "s"]], [["q"], ["p"], ["q", "r"]]]
    assert now(split.validation) == now(split.test) == [20, 1]
    assert split.timeline.now is not None
    assert split.timeline.now.tolist() == [20, 20], "a round has one moment for everybody"


def test_the_validation_item_is_no_candidate_although_no_client_knows_it_unless_the_protocol_says_so() -> None:
    """`honest` as it is defined and recorded; with hides=known it is a candidate, and hidden where it is known."""
    split = held_out(build(ROWS))
    assert [hidden for _, _, hidden in lists(split, split.test)] == [["p", "q", "s"], ["q", "r"]]
    split = held_out(build(ROWS), hides="known")
    assert lists(split, split.test) == [[["q", "s"], ["r"], ["q", "s"]], [["q"], ["p"], ["q"]]]
    assert lists(split, split.validation) == lists(held_out(build(ROWS)), held_out(build(ROWS)).validation)
    split = held_out(build(ROWS), hides="known", knows_validation=True)
    assert [hidden for _, _, hidden in lists(split, split.test)] == [["p", "q", "s"], ["q", "r"]]


def test_a_client_may_know_validation_at_test() -> None:
    split = held_out(build(ROWS), knows_validation=True)
    assert [known for known, _, _ in lists(split, split.validation)] == [["q", "s"], ["q"]]
    assert [known for known, _, _ in lists(split, split.test)] == [["q", "s", "p"], ["q", "r"]]
    assert (now(split.validation), now(split.test)) == ([20, 1], [30, 2])
    assert split.test.known.times is not None
    assert split.test.known.times.values.tolist() == [10, 20, 30, 1, 2]
    assert split.train.values.tolist() == held_out(build(ROWS)).train.values.tolist()


@pytest.mark.parametrize("knows", [False, True])
def test_a_client_may_know_the_time_of_the_answer(knows: bool) -> None:
    split = held_out(build(ROWS), moment="asked", knows_validation=knows)
    assert (now(split.validation), now(split.test)) == ([30, 2], [40, 3])


def test_rows_stand_for_time_where_the_protocol_says_so() -> None:
    """The last row of the file is the latest: the opposite of what equal times in `file` order mean."""
    split = held_out(build(ROWS, timed=False), untimed="rows")
    assert lists(split, split.test) == [[["p", "q"], ["s"], ["p", "q", "r"]], [["q"], ["r"], ["p", "q"]]]
    assert split.order == "rows"
    assert (split.timeline.times, split.timeline.now, split.test.known.now) == (None, None, None)
    assert split.notes == ("no timestamps: the rows of the file are taken to be in time order",)


def test_rows_decide_where_times_are_equal() -> None:
    rows = [("a", item, 7) for item in "pqrst"]
    last, first = (held_out(build(rows), ties=ties) for ties in ("rows", "file"))
    for split, order in ((last, "pqrst"), (first, "tsrqp")):
        names = [split.data.items[one.values.numpy()].tolist() for one in (split.timeline.items, split.test.relevant)]
        assert names == [list(order[:3]), [order[-1]]]
        assert split.order == "times"


@pytest.mark.parametrize(("untimed", "order"), [("random", "none"), ("appearance", "none"), ("rows", "rows")])
def test_the_order_that_is_known_is_said(untimed: str, order: str) -> None:
    assert held_out(build(ROWS, timed=False), untimed=untimed).order == order
    assert held_out(build(ROWS), untimed=untimed).order == "times"
