"""Intervals of a mean over users."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.evaluation.statistics import bootstrap_interval, bootstrap_intervals


def test_equal_seeds_give_equal_intervals_and_others_do_not() -> None:
    values = np.random.default_rng(0).normal(size=80)
    assert bootstrap_interval(values, seed=1) == bootstrap_interval(values, seed=1)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60))
def test_the_interval_contains_the_mean_and_stays_among_the_values(values: list[float]) -> None:
    low, high = bootstrap_interval(np.array(values), draws=500)
    assert min(values) <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= max(values)
    assert (low < high) == (len(set(values)) > 1)


def test_the_interval_has_the_width_theory_gives_it() -> None:
    values = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap_interval(values, draws=4000)
    half = 1.96 * values.std() / math.sqrt(400)
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert (high + low) / 2 == pytest.approx(values.mean(), abs=0.1 * half)


def test_a_higher_level_is_wider() -> None:
    values = np.random.default_rng(2).random(50)
    inner, outer = bootstrap_interval(values, level=0.5), bootstrap_interval(values, level=0.99)
    assert outer[0] < inner[0] < inner[1] < outer[1]


@pytest.mark.parametrize("kind", ["normal", "hits"])
def test_95_per_cent_intervals_cover_the_true_mean_93_to_97_per_cent_of_the_time(kind: str) -> None:
    """2,000 simulations of 250 users: the standard error of the share is 0.5 points."""
    random = np.random.default_rng(3)
    drawn = random.normal(0.3, 1, size=(250, 2000)) if kind == "normal" else random.random((250, 2000)) < 0.3
    low, high = bootstrap_intervals(drawn.astype(float))
    assert 0.93 <= ((low <= 0.3) & (high >= 0.3)).mean() <= 0.97
    low, high = bootstrap_intervals(drawn.astype(float), level=0.9)
    assert ((low <= 0.3) & (high >= 0.3)).mean() < 0.93, "the check above can fail"


def test_columns_are_drawn_with_the_same_users_as_alone() -> None:
    values = np.random.default_rng(5).random((40, 3))
    low, high = bootstrap_intervals(values, draws=300, seed=4)
    for column in range(3):
        assert bootstrap_interval(values[:, column], draws=300, seed=4) == pytest.approx((low[column], high[column]))


def test_the_number_of_draws_need_not_be_a_multiple_of_the_part_size() -> None:
    low, high = bootstrap_interval(np.arange(30.0), draws=137)
    assert 0 < low < 14.5 < high < 29


def test_a_single_user_has_no_spread() -> None:
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)
