"""Paired comparisons: worked by hand, against SciPy, and on simulated data with known truth."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ownview.base.errors import DataError
from ownview.evaluation.comparison import (
    Mark,
    UserValues,
    compare_columns,
    compare_rows,
    paired_test,
)
from ownview.evaluation.sign_flips import FLIPS
from ownview.evaluation.statistics import difference_intervals, mean_intervals

Floats = npt.NDArray[np.float64]
SIMULATIONS, USERS, SEEDS = 2000, 250, 3


def _row(*seeds: npt.ArrayLike, asked: tuple[str, ...] = ("same",)) -> UserValues:
    return UserValues(asked, np.array(seeds, dtype=float))


def test_a_small_case_by_hand() -> None:
    """Differences 3, -1, 2, 0, 4 tenths: mean 1.6, squares about it 1.96 + 6.76 + 0.16 + 2.56 + 5.76, variance 4.3.

    Ranks of 3, 1, 2, 4 (the nought left out) are 3, 1, 2, 4: W+ = 9, W- = 1, so r = 8 / 10.
    """
    test = paired_test(np.array([0.4, 0.0, 0.5, 0.1, 0.9]), np.array([0.1, 0.1, 0.3, 0.1, 0.5]))
    assert test.difference == pytest.approx(0.16)
    assert test.effect == pytest.approx(1.6 / math.sqrt(4.3))
    assert test.rank_effect == pytest.approx(0.8)
    assert test.users == 5
    assert test.low < 0.16 < test.high


def test_effects_agree_with_the_statistics_of_scipy() -> None:
    random = np.random.default_rng(0)
    ours, theirs = random.choice([0.0, 0.3, 0.6, 1.0], size=(2, 300))
    expected = stats.wilcoxon(ours, theirs, zero_method="wilcox", alternative="greater")
    moved = int((ours != theirs).sum())
    test = paired_test(ours, theirs)
    assert test.rank_effect == pytest.approx(2 * expected.statistic / (moved * (moved + 1) / 2) - 1)
    t = stats.ttest_rel(ours, theirs).statistic
    assert test.effect == pytest.approx(t / math.sqrt(300)), "d_z is the paired t over the root of the users"


def test_rounding_in_the_mean_over_seeds_makes_no_difference() -> None:
    thirds = np.array([0.1 + 0.2, 1 / 3 + 1 / 3 + 1 / 3, 0.7])
    same = np.array([0.3, 1.0, 0.1 * 7])
    assert (thirds != same).any()
    test = paired_test(thirds, same)
    assert (test.rank_effect, test.effect, test.difference) == (0.0, 0.0, 0.0)


def test_an_equal_shift_of_everybody_has_no_standard_deviation() -> None:
    test = paired_test(np.array([0.5, 0.75, 1.0]), np.array([0.0, 0.25, 0.5]))
    assert test.effect is None
    assert (test.high, test.rank_effect) == (0.5, 1.0)
    assert test.low == pytest.approx(0.5 - (1 - 0.025 ** (1 / 3))), (
        "that nobody of three lost does not say that nobody would"
    )


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from([0, 0.5, 1.0]), st.sampled_from([0, 0.5, 1.0])), min_size=2, max_size=40),
)
def test_turning_the_pair_round_turns_the_signs_and_the_order_of_users_is_nothing(
    pairs: list[tuple[float, float]],
) -> None:
    ours, theirs = np.array(pairs, dtype=float).T
    there, back = paired_test(ours, theirs), paired_test(theirs, ours)
    assert there.difference == pytest.approx(-back.difference)
    assert there.rank_effect == pytest.approx(-back.rank_effect)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert -1 <= there.rank_effect <= 1
    order = np.random.default_rng(len(pairs)).permutation(len(pairs))
    again = paired_test(ours[order], theirs[order])
    assert again.rank_effect == pytest.approx(there.rank_effect)


def test_marks() -> None:
    random = np.random.default_rng(1)
    base = 0.3 + random.random(200) / 3
    rows = {
        "worse": _row(base - 0.2 + 0.01 * random.normal(size=200)),
        "best": _row(base),
        "near": _row(base + 0.05 * random.normal(size=200) - 0.001),
        "others": _row(random.random(200) / 5, asked=("other users",)),
    }
    found = {row.label: row for row in compare_rows(rows)}
    marks = {label: row.mark for label, row in found.items()}
    assert list(found) == ["worse", "best", "near", "others"]
    assert marks["worse"] is Mark.WORSE
    assert {marks["best"], marks["near"]} == {Mark.BEST, Mark.LEVEL}
    assert marks["others"] is Mark.UNPAIRED
    assert found["others"].against_best is None
    assert found["others"].p_corrected is None
    worse = found["worse"]
    assert worse.against_best is not None
    assert worse.p_corrected == pytest.approx(0.5 / (FLIPS + 1)), "one column: as the flipped signs say"
    assert worse.to_dict()["mark"] == "worse"


def test_the_mean_decides_where_ranks_and_mean_disagree() -> None:
    """70 of 90 users are served a little better by `few`, 20 much worse: the mean favours `many`, the ranks do not.

    The figure of the table is the mean, so the mark is about the mean; the ranks stand beside it as an effect size.
    """
    few = _row(np.concatenate([np.full(70, 0.52), np.full(20, 0.1)]) + np.arange(90) * 1e-6)
    many = _row(np.full(90, 0.5))
    row = compare_rows({"few": few, "many": many})[0]
    assert row.against_best is not None
    assert row.p_corrected is not None
    assert row.p_corrected < 0.01
    assert row.against_best.rank_effect == pytest.approx((70 * 71 / 2 - (4095 - 70 * 71 / 2)) / 4095, abs=0.01)
    assert row.mark is Mark.WORSE


def test_the_correction_is_over_the_whole_table() -> None:
    random = np.random.default_rng(2)
    base = 0.3 + random.random(60) / 3
    shifted = base + 0.019 + 0.06 * random.normal(size=60)
    column = {"a": _row(base), "b": _row(shifted)}
    alone = compare_rows(column)
    p = next(row.p_corrected for row in alone if row.p_corrected is not None)
    assert 0.01 < p < 0.05, "the case is made so that ten columns lose what one tells"
    ten = compare_columns(dict.fromkeys(range(10), column))
    assert {row.mark for row in alone} == {Mark.BEST, Mark.WORSE}
    assert all({row.mark for row in rows} == {Mark.BEST, Mark.LEVEL} for rows in ten.values())
    assert next(row.p_corrected for row in ten[3] if row.p_corrected is not None) == pytest.approx(10 * p)


def test_a_row_is_compared_with_another_that_is_asked_for() -> None:
    """Neither is the best: the pair has a test of its own, and the marks stay as they are."""
    random = np.random.default_rng(5)
    base = 0.2 + random.random(200) / 3
    rows = {"without": _row(base), "with": _row(base + 0.03 + 0.01 * random.normal(size=200)), "best": _row(base + 0.2)}
    plain, also = (compare_columns({"": rows}, asked)[""] for asked in (None, {"with": "without"}))
    assert [one.beside for one in plain] == [None, None, None]
    assert [one.mark for one in also] == [one.mark for one in plain] == [Mark.WORSE, Mark.WORSE, Mark.BEST]
    beside = also[1].beside
    assert beside is not None
    assert (beside.label, beside.test.users) == ("without", 200)
    assert beside.test.difference == pytest.approx((rows["with"].values - rows["without"].values).mean())
    assert beside.test.low < beside.test.difference < beside.test.high
    assert beside.p_corrected < 0.001
    assert compare_columns({"": rows}, {"with": "absent"})[""][1].beside is None


def test_more_rows_make_the_best_less_sure() -> None:
    """The same pair as above, among eight rows as good as either: what two rows tell, ten do not."""
    random = np.random.default_rng(2)
    base = 0.3 + random.random(60) / 3
    pair = {"a": _row(base), "b": _row(base + 0.019 + 0.06 * random.normal(size=60))}
    others = {f"{k}": _row(base + 0.0095 + 0.03 * random.normal(size=60)) for k in range(8)}
    assert {row.mark for row in compare_rows(pair)} == {Mark.BEST, Mark.WORSE}
    assert Mark.WORSE not in {row.mark for row in compare_rows(pair | others)}


def test_values_that_are_no_shares_are_refused() -> None:
    with pytest.raises(DataError, match="expected 0 to 1"):
        compare_rows({"a": _row([0.1, 2.0]), "b": _row([0.2, 0.1])})


def test_seeds_are_averaged_user_by_user() -> None:
    row = compare_rows({"only": _row([0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0])})[0]
    assert (row.mean, row.seeds, row.users, row.mark) == (0.5, 2, 4, Mark.BEST)
    assert row.spread == 0.0
    plain = compare_rows({"only": _row([0.5, 1.0, 0.5, 0.0])})[0]
    assert (row.low, row.high) == (plain.low, plain.high)


def _covered(values: Floats, truth: float) -> float:
    """Share of the simulations [users, simulations] whose interval holds the truth."""
    low, high = difference_intervals(values) if values.min() < 0 else mean_intervals(values)
    return float(((low <= truth) & (truth <= high)).mean())


def _hits(random: np.random.Generator, chances: Floats) -> Floats:
    """[seeds, users, simulations] of hits where user u hits with its own chance."""
    return (random.random((SEEDS, *chances.shape)) < chances).astype(float)


def test_intervals_over_users_and_seeds_cover_the_truth_93_to_97_per_cent() -> None:
    """Users hit with chances from Beta(1, 3), mean 1/4; 2,000 simulations: the share's standard error is 0.5 points.

    Taking the three seeds of a user for three users, as if they knew nothing of each other, covers too little.
    """
    random = np.random.default_rng(4)
    hits = _hits(random, random.beta(1, 3, size=(USERS, SIMULATIONS)))
    assert 0.93 <= _covered(hits.mean(axis=0), 0.25) <= 0.97
    assert _covered(hits.reshape(SEEDS * USERS, SIMULATIONS), 0.25) < 0.92


def test_intervals_of_paired_differences_cover_the_truth_93_to_97_per_cent() -> None:
    """The second method's chance is 0.8 of the first's for every user: the true difference is 0.2 / 4.

    Drawing users for each method apart forgets that they are the same: too wide, it covers too much.
    """
    random = np.random.default_rng(5)
    chances = random.beta(0.3, 0.9, size=(USERS, SIMULATIONS))
    first, second = _hits(random, chances).mean(axis=0), _hits(random, 0.8 * chances).mean(axis=0)
    assert 0.93 <= _covered(first - second, 0.05) <= 0.97
    apart = first - second[random.permutation(USERS)]
    assert _covered(apart, 0.05) > 0.97


def test_equal_methods_are_told_apart_in_about_one_of_twenty_tables() -> None:
    """Two methods of equal quality, 200 tables: the mark says `worse` in 5 % (standard error 1.5 points) or fewer."""
    random = np.random.default_rng(6)
    chances = random.beta(1, 3, size=(60, 200))
    first, second = (_hits(random, chances).mean(axis=0) for _ in range(2))
    wrong = 0
    for table in range(200):
        rows = compare_rows({"a": _row(first[:, table]), "b": _row(second[:, table])})
        wrong += any(row.mark is Mark.WORSE for row in rows)
    assert 0.005 < wrong / 200 < 0.05 + 3 * 0.015


@pytest.mark.slow
@pytest.mark.parametrize("number", [5, 20])
def test_tables_of_many_equal_methods_call_one_worse_in_about_one_of_twenty(number: int) -> None:
    """60 users, 150 tables: the standard error is 1.8 points. Wilcoxon's test of the best and Holm had 9 % and 23 %."""
    random = np.random.default_rng(number)
    wrong = 0
    for _ in range(150):
        chances = random.beta(1, 3, size=60)
        rows = {f"{k}": _row(*_hits(random, chances)) for k in range(number)}
        wrong += any(row.mark is Mark.WORSE for row in compare_rows(rows))
    assert wrong / 150 < 0.05 + 3 * 0.018
