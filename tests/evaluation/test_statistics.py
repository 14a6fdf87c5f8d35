"""Intervals of a mean over users."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.evaluation.statistics import bootstrap_interval


def test_equal_seeds_give_equal_intervals_and_others_do_not() -> None:
    values = np.random.default_rng(0).normal(size=80)
    assert bootstrap_interval(values, seed=1) == bootstrap_interval(values, seed=1)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


@settings(max_examples=50, deadline=None)
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
def test_95_per_cent_intervals_cover_the_true_mean_about_as_often(kind: str) -> None:
    """400 simulations of 150 users: the standard error of the share is 1.1 points.

    The percentile interval is known to be a little too narrow for few users (about one point here), so the
    share must lie within four standard errors below and three above 95 %.
    """
    random = np.random.default_rng(3)
    covered = 0
    for simulation in range(400):
        values = random.normal(0.3, 1, size=150) if kind == "normal" else (random.random(150) < 0.3).astype(float)
        low, high = bootstrap_interval(values, draws=400, seed=simulation)
        covered += low <= 0.3 <= high
    assert 0.95 - 4 * 0.011 < covered / 400 < 0.95 + 3 * 0.011


def test_the_number_of_draws_need_not_be_a_multiple_of_the_part_size() -> None:
    low, high = bootstrap_interval(np.arange(30.0), draws=137)
    assert 0 < low < 14.5 < high < 29


def test_a_single_user_has_no_spread() -> None:
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)
