"""Metrics of several right answers, against a plain walk through every order that ties allow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.evaluation.metrics import Standing, area_under_curve, hit_rate, ndcg, per_user, recall, reciprocal_rank
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.ranking import Ranker, rankers

CUTOFFS = (1, 2, 3, 5, 10)
CPU = torch.device("cpu")


class Person(NamedTuple):
    """Scores of all candidates, and which of them are right."""

    scores: list[int]
    right: list[int]


@st.composite
def person(draw: st.DrawFn, answers: int | None = None) -> Person:
    """At most six candidates, most of them tied."""
    scores = draw(st.lists(st.integers(0, 2), min_size=answers or 1, max_size=6))
    places = st.lists(st.sampled_from(range(len(scores))), min_size=1, max_size=len(scores), unique=True)
    right = draw(places) if answers is None else draw(st.permutations(range(len(scores))))[:answers]
    return Person(scores, right)


def standing(people: list[Person], ties: str) -> Standing:
    """By counting."""
    better, tied = [], []
    for scores, right in people:
        better += [sum(other > scores[one] for other in scores) for one in right]
        tied += [sum(other == scores[one] for other in scores) - 1 for one in right]
    candidates = np.array([len(one.scores) for one in people])
    answers = np.array([len(one.right) for one in people])
    return Standing(np.arange(len(people)), np.array(better), np.array(tied), candidates, ties, answers)


def orders(one: Person, ties: str) -> Iterator[list[bool]]:
    """Every order of the candidates that the scores and the tie rule allow: whether each place is right."""
    blocks = [[place for place, score in enumerate(one.scores) if score == level] for level in (2, 1, 0)]
    if ties == "last":
        yield [place in one.right for block in blocks for place in sorted(block, key=lambda p: p in one.right)]
        return
    for order in product(*map(permutations, blocks)):
        yield [place in one.right for block in order for place in block]


def by_hand(order: list[bool], k: int) -> dict[str, float]:
    """Metrics of one order, by their definitions."""
    right, wrong = sum(order), len(order) - sum(order)
    gains = [1 / math.log2(rank + 1) for rank in range(1, k + 1)]
    beaten = sum(one and not other for place, one in enumerate(order) for other in order[place:])
    return {
        "HR": float(any(order[:k])),
        "NDCG": sum(gain for gain, hit in zip(gains, order, strict=False) if hit) / sum(gains[:right]),
        "recall": sum(order[:k]) / right,
        "MRR": 1 / (order.index(True) + 1),
        "AUC": beaten / (right * wrong) if wrong else 0.5,
    }


@pytest.mark.parametrize("ties", ["expected", "last"])
@settings(max_examples=60)
@given(people=st.lists(person(), min_size=1, max_size=3))
def test_every_metric_is_its_mean_over_all_orders(ties: str, people: list[Person]) -> None:
    found = standing(people, ties)
    for k in CUTOFFS:
        ours = {
            "HR": hit_rate(found, k),
            "NDCG": ndcg(found, k),
            "recall": recall(found, k),
            "MRR": reciprocal_rank(found),
            "AUC": area_under_curve(found),
        }
        for place, one in enumerate(people):
            every = [by_hand(order, k) for order in orders(one, ties)]
            for name, values in ours.items():
                expected = sum(values[name] for values in every) / len(every)
                assert values[place] == pytest.approx(expected, abs=1e-9), (name, k, one)


@pytest.mark.parametrize("ties", ["expected", "last"])
@settings(max_examples=60)
@given(people=st.lists(person(answers=1), min_size=1, max_size=4))
def test_one_answer_each_is_a_case_of_several(ties: str, people: list[Person]) -> None:
    several = standing(people, ties)
    one = replace(several, answers=None)
    expected = per_user(one, CUTOFFS)
    assert not any(name.startswith("recall") for name in expected)  # it would be HR once more
    found = per_user(several, CUTOFFS)
    assert {name for name in found if not name.startswith("recall")} == set(expected)
    for name, values in found.items():
        assert values == pytest.approx(expected[name.replace("recall", "HR")], abs=1e-12)


def test_by_hand_two_right_of_four_tied() -> None:
    """One candidate above, four tied of whom two are right, one below: the places 2 to 5 hold two right ones."""
    one = Person([9, 5, 5, 5, 5, 1], [1, 2])
    expected, last = standing([one], "expected"), standing([one], "last")
    assert hit_rate(expected, 3)[0] == pytest.approx(1 - 1 / 6)  # both outside the two places: 1 of the 6 pairs
    assert recall(expected, 3)[0] == pytest.approx(0.5)
    assert reciprocal_rank(expected)[0] == pytest.approx(3 / 6 / 2 + 2 / 6 / 3 + 1 / 6 / 4)
    assert area_under_curve(expected)[0] == pytest.approx((1 + 2 * 0.5) / 4)
    assert (hit_rate(last, 3)[0], hit_rate(last, 4)[0]) == (0, 1)
    assert (recall(last, 4)[0], recall(last, 5)[0]) == (0.5, 1)
    assert reciprocal_rank(last)[0] == 1 / 4
    assert area_under_curve(last)[0] == 1 / 4


def test_all_right_answers_first_is_the_best_there_is() -> None:
    found = standing([Person([5, 4, 3, 2, 1, 0], [0, 1, 2])], "expected")
    assert per_user(found, (5, 10)) == {
        name: pytest.approx([1.0])
        for name in ("HR@5", "NDCG@5", "recall@5", "HR@10", "NDCG@10", "recall@10", "MRR", "AUC")
    }


class Table:
    """Scores that are given: [users, items]."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        assert items is None
        return self.table[users]


def asking(relevant: list[list[int]], hidden: list[list[int]], num_items: int) -> Ranker:
    """A ranker of users with given right answers and hidden items."""
    rows = [(user, item) for user in range(len(relevant)) for item in range(num_items)]
    users, items = (np.array(column) for column in zip(*rows, strict=True))
    split = HONEST.prepare(Interactions.from_rows("all", users, items, timestamp=np.arange(len(rows))))
    lists = [
        Ragged.from_pairs(np.repeat(np.arange(len(one)), [len(mine) for mine in one]), np.concatenate(one), len(one))
        for one in ([np.array(mine, dtype=np.int64) for mine in every] for every in (relevant, hidden))
    ]
    question = Question(lists[0], split.test.known, lists[1])
    return rankers(HONEST, replace(split, test=question), 0, CPU, 10**6)[1]


@settings(max_examples=60)
@given(st.lists(st.tuples(person(answers=None), st.sets(st.integers(0, 5))), min_size=1, max_size=5))
def test_the_ranker_counts_for_every_right_answer(drawn: list[tuple[Person, set[int]]]) -> None:
    """Hidden items are no candidates, and who has no right answer is not asked."""
    people = [Person((one.scores + [0] * 6)[:6], one.right) for one, _ in drawn]
    hidden = [sorted(gone - set(one.right)) for one, (_, gone) in zip(people, drawn, strict=True)]
    without: list[list[int]] = [[]] if len(people) > 1 else []
    ranker = asking([one.right for one in people] + without, hidden + without, 6)
    found = ranker.rank(Table(torch.tensor([one.scores for one in people] + [[0] * 6] * len(without)).double()))
    shown = [
        Person([score for item, score in enumerate(one.scores) if item not in gone],
               [item - sum(other < item for other in gone) for item in one.right])
        for one, gone in zip(people, hidden, strict=True)
    ]  # fmt: skip
    expected = standing(shown, "expected")
    assert found.users.tolist() == list(range(len(people)))
    assert found.candidates.tolist() == expected.candidates.tolist()
    for one, other in ((found.better, expected.better), (found.tied, expected.tied)):
        assert one.tolist() == other.tolist()
    if max(len(one.right) for one in people) > 1:
        assert found.answers is not None
        assert expected.answers is not None
        assert found.answers.tolist() == expected.answers.tolist()
    else:
        assert found.answers is None


@pytest.mark.parametrize("block", [1, 2, 3])
def test_the_block_size_changes_nothing_where_answers_are_several(block: int) -> None:
    ranker = asking([[0, 3], [1], [2, 4, 5], [5]], [[1], [], [0], [2]], 6)
    table = Table(torch.from_numpy(np.random.default_rng(0).integers(3, size=(4, 6)) / 2))
    whole, parts = ranker.rank(table), replace(ranker, block=block).rank(table)
    for name in ("users", "better", "tied", "candidates", "answers"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


def test_some_of_the_users_are_asked_the_same() -> None:
    ranker = asking([[0, 3], [1], [2, 4, 5], [5]], [[1], [], [0], [2]], 6)
    table = Table(torch.from_numpy(np.random.default_rng(1).integers(3, size=(4, 6)) / 2))
    whole, some = ranker.rank(table), ranker.of(torch.tensor([2, 0])).rank(table)
    assert some.users.tolist() == [2, 0]
    assert some.better.tolist() == [*whole.better[3:6].tolist(), *whole.better[:2].tolist()]
    for name, values in per_user(some, CUTOFFS).items():
        assert values.tolist() == per_user(whole, CUTOFFS)[name][[2, 0]].tolist()
