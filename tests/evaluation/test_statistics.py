"""Intervals of a mean over users: by hand, against SciPy, and on simulated users whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ownview.base.errors import DataError
from ownview.evaluation.statistics import (
    difference_interval,
    difference_intervals,
    mean_interval,
    mean_intervals,
)

Floats = npt.NDArray[np.float64]
SHARES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60)
PLACES = 1 / np.log2(np.arange(2, 12))
"""NDCG of an item in the first, second, ... tenth place."""


@pytest.mark.parametrize(("hits", "users"), [(0, 30), (1, 30), (6, 943), (15, 30), (29, 30), (30, 30)])
def test_for_hits_the_ends_are_those_of_clopper_and_pearson(hits: int, users: int) -> None:
    exact = stats.binomtest(hits, users).proportion_ci(0.95, method="exact")
    values = (np.arange(users) < hits).astype(np.float64)
    assert mean_interval(values) == pytest.approx((exact.low, exact.high), abs=1e-8)


def test_values_that_vary_less_count_as_more_users() -> None:
    """0, 0, 1/2, 1/2: mean 1/4, variance 1/16, hits of that mean 3/16: as 4 * 3 = 12 users of whom 3 hit."""
    exact = stats.binomtest(3, 12).proportion_ci(0.95, method="exact")
    assert mean_interval(np.array([0.0, 0.0, 0.5, 0.5])) == pytest.approx((exact.low, exact.high), abs=1e-8)


def test_where_nobody_hits_the_upper_end_is_what_nobody_can_have_seen() -> None:
    low, high = mean_interval(np.zeros(100))
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 100))
    low, high = mean_interval(np.ones(100))
    assert low == pytest.approx(0.025 ** (1 / 100))
    assert high == 1.0


def test_equal_values_and_single_users_have_no_spread() -> None:
    assert mean_interval(np.array([0.25])) == (0.25, 0.25)
    assert mean_interval(np.full(7, 0.3)) == pytest.approx((0.3, 0.3))


@settings(max_examples=50)
@given(SHARES)
def test_the_interval_contains_the_mean_stays_from_0_to_1_and_turns_with_the_values(values: list[float]) -> None:
    low, high = mean_interval(np.array(values))
    assert 0 <= low <= np.mean(values) <= high <= 1
    turned = mean_interval(1 - np.array(values))
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_the_interval_has_the_width_theory_gives_it() -> None:
    values = np.random.default_rng(1).beta(2, 3, size=2000)
    low, high = mean_interval(values)
    half = 1.96 * values.std() / math.sqrt(2000)
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert (high + low) / 2 == pytest.approx(values.mean(), abs=0.1 * half)


def test_a_higher_level_is_wider() -> None:
    values = np.random.default_rng(2).random(50)
    inner, outer = mean_interval(values, level=0.5), mean_interval(values, level=0.99)
    assert outer[0] < inner[0] < inner[1] < outer[1]


def test_columns_are_as_alone() -> None:
    values = np.random.default_rng(5).random((40, 3)) * np.array([0, 1, 0.5])
    for many, one in ((mean_intervals, mean_interval), (difference_intervals, difference_interval)):
        low, high = many(values - 0.2 * (many is difference_intervals))
        for column in range(3):
            alone = values[:, column] - 0.2 * (many is difference_intervals)
            assert one(alone) == pytest.approx((low[column], high[column]), abs=1e-9)


def test_other_values_are_refused() -> None:
    with pytest.raises(DataError, match=r"lie from 0 to 1\.5; expected 0 to 1"):
        mean_interval(np.array([0.0, 1.5]))
    with pytest.raises(DataError, match="go up to 2; expected -1 to 1"):
        difference_interval(np.array([-2.0, 1.0]))


@settings(max_examples=50)
@given(SHARES, SHARES)
def test_the_interval_of_a_difference_contains_it_and_turns_with_it(ours: list[float], theirs: list[float]) -> None:
    users = min(len(ours), len(theirs))
    difference = np.array(ours[:users]) - np.array(theirs[:users])
    low, high = difference_interval(difference)
    assert low <= difference.mean() + 1e-12
    assert high >= difference.mean() - 1e-12
    assert difference_interval(-difference) == pytest.approx((-high, -low), abs=1e-9)


def test_a_difference_by_hand() -> None:
    """Of 30 users 6 won and 2 lost: both shares' exact ends, and the correlation of winning and losing."""
    won, lost = (stats.binomtest(hits, 30).proportion_ci(0.95, method="exact") for hits in (6, 2))
    r = -math.sqrt((6 * 2) / (24 * 28))
    below, above = (0.2 - won.low, lost.high - 2 / 30), (won.high - 0.2, 2 / 30 - lost.low)
    ends = [math.sqrt(a * a + b * b - 2 * r * a * b) for a, b in (below, above)]
    values = np.concatenate([np.ones(6), -np.ones(2), np.zeros(22)])
    assert difference_interval(values) == pytest.approx((4 / 30 - ends[0], 4 / 30 + ends[1]), abs=1e-8)


def _users(random: np.random.Generator, kind: str, chance: float, shape: tuple[int, int]) -> tuple[Floats, float]:
    """Per-user values [users, simulations] of HR@10, NDCG@10, or HR@10 over three seeds, and their true mean."""
    if kind == "seeds":
        own = random.beta(0.3, 0.3 * (1 - chance) / chance, size=shape)
        return (random.random((3, *shape)) < own).mean(axis=0), chance
    hits = random.random(shape) < chance
    if kind == "hits":
        return hits.astype(float), chance
    return np.where(hits, random.choice(PLACES, size=shape), 0.0), chance * float(PLACES.mean())


def _covered(intervals: tuple[Floats, Floats], truth: float) -> float:
    return float(((intervals[0] <= truth) & (truth <= intervals[1])).mean())


def _normal(values: Floats) -> tuple[Floats, Floats]:
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return mean - 1.96 * error, mean + 1.96 * error


@pytest.mark.parametrize("kind", ["hits", "ndcg", "seeds"])
@pytest.mark.parametrize("chance", [0.006, 0.3])
def test_95_per_cent_intervals_hold_the_truth_near_0_too(kind: str, chance: float) -> None:
    """2,000 simulations of 943 users: the standard error of the share is 0.5 points."""
    values, truth = _users(np.random.default_rng(3), kind, chance, (943, 2000))
    assert 0.935 <= _covered(mean_intervals(values), truth) <= 0.99
    assert _covered(mean_intervals(values, level=0.8), truth) < 0.93, "the check above can fail"
    if chance < 0.01 and kind != "seeds":
        assert _covered(_normal(values), truth) < 0.925, "mean and standard error do not hold it"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hits", "ndcg", "seeds"])
@pytest.mark.parametrize(("users", "simulations"), [(100, 10000), (943, 4000), (6040, 1500)])
def test_intervals_hold_the_truth_for_few_and_many_users_from_hardly_any_to_nearly_all_hits(
    kind: str, users: int, simulations: int
) -> None:
    """At least 93.5 % everywhere (measured: 94.4 % and more); the standard error of the share is 0.6 points at most."""
    random = np.random.default_rng(users)
    for chance in (0.002, 0.006, 0.02, 0.1, 0.5, 0.9, 0.99):
        values, truth = _users(random, kind, chance, (users, simulations))
        assert _covered(mean_intervals(values), truth) >= 0.935, chance


@pytest.mark.parametrize(("first", "second"), [(0.012, 0.006), (0.12, 0.1)])
@pytest.mark.parametrize("kind", ["hits", "ndcg"])
def test_intervals_of_paired_differences_hold_the_truth(kind: str, first: float, second: float) -> None:
    """Half of the users are asked the same by fate in both rows; 2,000 simulations of 943 users."""
    random = np.random.default_rng(4)
    shape = (943, 2000)
    fate, other = random.random(shape), random.random(shape)
    fate_too = np.where(random.random(shape) < 0.5, fate, other)
    places = random.choice(PLACES, size=shape) if kind == "ndcg" else 1.0
    difference = ((fate < first).astype(float) - (fate_too < second)) * places
    truth = (first - second) * float(np.mean(PLACES) if kind == "ndcg" else 1)
    assert 0.935 <= _covered(difference_intervals(difference), truth) <= 0.99
    assert _covered(difference_intervals(difference, level=0.8), truth) < 0.93, "the check above can fail"
