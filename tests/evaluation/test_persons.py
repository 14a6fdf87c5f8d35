"""A person who is asked several times is one unit: of intervals, of flipped signs, and of every pooled table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ownview.evaluation.comparison import Mark, UserValues, compare_rows, paired_test
from ownview.evaluation.statistics import by_person, difference_intervals, mean_interval, mean_intervals

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PERSONS, SIMULATIONS = 200, 1500


def _asked(random: np.random.Generator) -> Ints:
    """[questions] the person of each: one to five questions a person, as the pooled cuts of next-sitting have."""
    return np.repeat(np.arange(PERSONS), random.integers(1, 6, size=PERSONS))


def _answers(random: np.random.Generator, who: Ints, chances: Floats) -> Floats:
    """[questions, simulations] hits, with a chance of the person's own [persons, simulations]."""
    found: Floats = (random.random((len(who), SIMULATIONS)) < chances[who]).astype(float)
    return found


def test_with_one_question_a_person_nothing_changes() -> None:
    values = np.random.default_rng(0).random((50, 4))
    each = np.arange(50)
    assert np.allclose(mean_intervals(values, each), mean_intervals(values))
    differences = values - values[::-1]
    assert np.allclose(difference_intervals(differences, each), difference_intervals(differences))


def test_a_person_asked_twice_with_the_same_answer_is_no_second_person() -> None:
    hits = (np.arange(60) < 20).astype(float)
    twice, who = np.repeat(hits, 2), np.repeat(np.arange(60), 2)
    assert mean_interval(twice, who) == pytest.approx(mean_interval(hits))
    assert mean_interval(np.zeros(120), who) == pytest.approx(mean_interval(np.zeros(60)))
    test, once = paired_test(twice, np.zeros(120), who), paired_test(hits, np.zeros(60))
    assert (test.low, test.high, test.rank_effect, test.effect) == pytest.approx(
        (once.low, once.high, once.rank_effect, once.effect)
    )
    assert by_person(twice[:, None], who)[:, 0].tolist() == (2 * hits).tolist()


def test_intervals_over_persons_hold_the_truth_and_intervals_over_questions_do_not() -> None:
    """Chances from Beta(0.5, 1), mean 1/3, the same at all of a person's questions; 1,500 simulations."""
    random = np.random.default_rng(1)
    who = _asked(random)
    hits = _answers(random, who, random.beta(0.5, 1, size=(PERSONS, SIMULATIONS)))
    covered = []
    for persons in (who, None):
        low, high = mean_intervals(hits, persons)
        covered.append(float(((low <= 1 / 3) & (high >= 1 / 3)).mean()))
    assert 0.93 <= covered[0] <= 0.975
    assert covered[1] < 0.88


def test_intervals_of_differences_over_persons_hold_the_truth() -> None:
    """Who likes the one method likes it at all of its questions: the true difference is 0."""
    random = np.random.default_rng(2)
    who = _asked(random)
    first, second = (_answers(random, who, random.beta(0.5, 1, size=(PERSONS, SIMULATIONS))) for _ in range(2))
    covered = []
    for persons in (who, None):
        low, high = difference_intervals(first - second, persons)
        covered.append(float(((low <= 0) & (high >= 0)).mean()))
    assert 0.93 <= covered[0] <= 0.975
    assert covered[1] < 0.88


def test_equal_rows_of_a_pooled_table_are_told_apart_in_one_of_twenty_tables() -> None:
    """200 tables of two equal rows: with persons as units 5 % (standard error 1.5 points), with questions far more."""
    random, tables = np.random.default_rng(3), 200
    who = _asked(random)
    ids = tuple(f"u{one}" for one in who)
    wrong = {"persons": 0, "questions": 0}
    for _ in range(tables):
        chances = random.beta(0.5, 1, size=(2, PERSONS))
        hits = [(random.random(len(who)) < own[who]).astype(float)[None] for own in chances]
        for kind, persons in (("persons", ids), ("questions", None)):
            rows = {str(place): UserValues(("same",), one, persons=persons) for place, one in enumerate(hits)}
            wrong[kind] += any(cell.mark is Mark.WORSE for cell in compare_rows(rows))
    assert wrong["persons"] / tables < 0.05 + 3 * 0.016
    assert wrong["questions"] / tables > 0.12


def test_a_cell_says_of_how_many_persons_it_is() -> None:
    row = UserValues(("same",), np.array([[1.0, 0.0, 1.0]]), persons=("a", "b", "a"))
    (cell,) = compare_rows({"only": row})
    assert (cell.users, cell.persons) == (3, 2)
    assert cell.mean == pytest.approx(2 / 3)


def test_a_row_that_lacks_a_pooled_cut_is_never_the_best() -> None:
    both = UserValues(("p", "a", "b", "c", "d"), np.array([[0.2, 0.3, 0.1, 0.2]]), persons=("1", "2", "1", "2"))
    one = UserValues(("p", "a", "b"), np.array([[0.9, 0.9]]), persons=("1", "2"))
    cells = {cell.label: cell for cell in compare_rows({"one cut": one, "both cuts": both})}
    assert cells["both cuts"].mark is Mark.BEST
    assert cells["one cut"].mark is Mark.UNPAIRED
