"""P values of pairs of rows: exact where all signs can be counted, and simulated tables of equal and unequal rows."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ownview.evaluation.sign_flips import FLIPS, holm_over_columns, p_between

Floats = npt.NDArray[np.float64]


def _best(values: Floats) -> int:
    return int(values.mean(axis=0).argmax())


def _t(values: Floats, one: int, other: int) -> float:
    difference = values[:, one] - values[:, other]
    return float(difference.sum() / np.sqrt((difference**2).sum())) if difference.any() else 0.0


def _beyond(every: Floats, ours: float) -> float:
    """Share of all patterns that go beyond ours, level ones by half."""
    return float((every > ours + 1e-9).mean() + (np.abs(every - ours) <= 1e-9).mean() / 2)


def test_two_rows_are_the_sign_flip_test_of_the_mean() -> None:
    """Nine users differ by 0.1 to 0.9; of all 512 patterns of signs those count whose sum is farther from 0."""
    difference = np.array([9.0, 8, -1, 7, 6, -5, 4, 3, 2]) / 10
    patterns = np.array(list(product([-1, 1], repeat=9))) @ np.abs(difference)
    exact = _beyond(np.abs(patterns), difference.sum())
    found = p_between(np.stack([difference, np.zeros(9)], axis=1), 0, flips=20000)[0]
    assert found[0] == 1
    assert found[1] == pytest.approx(exact, abs=4 * np.sqrt(exact / 20000))


def test_three_rows_by_counting_all_signs() -> None:
    """The first of the rows by t has the largest of all three pairs to beat; the second only that of the two left."""
    random = np.random.default_rng(0)
    values = random.random((8, 3)) + np.array([0.3, 0.0, -0.1])
    best = _best(values)
    first, second = sorted((row for row in range(3) if row != best), key=lambda row: -_t(values, best, row))
    all_pairs, last_pair = [], []
    for signs in product([-1, 1], repeat=8):
        turned = values * np.array(signs)[:, None]
        all_pairs.append(max(abs(_t(turned, *pair)) for pair in combinations(range(3), 2)))
        last_pair.append(abs(_t(turned, best, second)))
    exact = _beyond(np.array(all_pairs), _t(values, best, first))
    exact_too = max(exact, _beyond(np.array(last_pair), _t(values, best, second)))
    found = p_between(values, best, flips=20000)[best]
    assert found[[first, second]] == pytest.approx([exact, exact_too], abs=0.015)
    assert 0.01 < exact < exact_too < 0.6


def test_pairs_without_the_best_have_all_pairs_to_beat_and_p_is_symmetric() -> None:
    """Both ends of the same pair of lower rows, by counting all signs of eight units."""
    values = np.random.default_rng(5).random((8, 4)) * [1.2, 1.0, 0.6, 0.3]
    best = _best(values)
    one, other = (row for row in range(4) if row not in (best, int(values.mean(axis=0).argmin())))
    largest = [
        max(abs(_t(values * np.array(signs)[:, None], *pair)) for pair in combinations(range(4), 2))
        for signs in product([-1, 1], repeat=8)
    ]
    found = p_between(values, best, flips=20000)
    assert found[one, other] == pytest.approx(_beyond(np.array(largest), abs(_t(values, one, other))), abs=0.015)
    assert np.array_equal(found, found.T)
    assert (np.diag(found) == 1).all()


def test_equal_seeds_give_equal_p_and_the_order_of_rows_is_nothing() -> None:
    values = np.random.default_rng(1).random((60, 4))
    best = _best(values)
    found = p_between(values, best)
    assert np.array_equal(found, p_between(values, best))
    assert not np.array_equal(found, p_between(values, best, seed=1))
    turned = values[:, ::-1]
    assert np.allclose(p_between(turned, 3 - best)[::-1, ::-1], found)


def test_rows_that_are_the_same_are_not_told_apart_and_clear_ones_are() -> None:
    base = np.random.default_rng(2).random(200)
    assert (p_between(np.stack([base, base, base], axis=1), 0) == 1).all()
    p = p_between(np.stack([base, base, base / 2], axis=1), 0)[0]
    assert p[:2].tolist() == [1, 1]
    assert p[2] == pytest.approx(0.5 / (FLIPS + 1))


def test_rows_that_are_clearly_worse_do_not_hide_the_others() -> None:
    """Against eight rows of noise around nought the pair of close rows has the p that it has alone."""
    random = np.random.default_rng(3)
    base = random.random(300)
    near = base - 0.03 + 0.15 * random.normal(size=300)
    far = 0.02 * random.random((300, 8))
    together = p_between(np.column_stack([base, near, far]), 0)[0]
    alone = p_between(np.column_stack([base, near]), 0)[0]
    assert together[1] == pytest.approx(alone[1], abs=0.01)
    assert 0.005 < alone[1] < 0.2
    assert (together[2:] < 0.001).all()


def _hits(random: np.random.Generator, chances: list[float], users: int, alike: float) -> Floats:
    """[users, rows]: hits where a normal number, a share `alike` of it the user's own, passes a row's threshold."""
    own = np.sqrt(alike) * random.normal(size=(users, 1))
    latent = own + np.sqrt(1 - alike) * random.normal(size=(users, len(chances)))
    found: Floats = (latent > stats.norm.isf(chances)).astype(float)
    return found


def _wrong(rows: int, tables: int, chance: float, users: int, alike: float) -> float:
    """Share of tables of equal rows in which any two rows are told apart."""
    random = np.random.default_rng(rows)
    found = 0
    for _ in range(tables):
        values = _hits(random, [chance] * rows, users, alike)
        found += bool((p_between(values, _best(values), flips=1000) < 0.05).any())
    return found / tables


@pytest.mark.parametrize("rows", [2, 5, 20])
def test_equal_rows_are_told_apart_in_no_more_than_one_of_twenty_tables(rows: int) -> None:
    """400 tables: the standard error of 5 % is 1.1 points. Single pairs' tests, corrected by Holm, had 23 % for 20."""
    assert 0.01 < _wrong(rows, 400, 0.3, 120, 0.5) < 0.05 + 3 * 0.011


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 5, 20])
@pytest.mark.parametrize("chance", [0.006, 0.1])
@pytest.mark.parametrize("alike", [0.5, 0.9])
def test_equal_rows_of_943_users_are_told_apart_in_no_more_than_one_of_twenty_tables(
    rows: int, chance: float, alike: float
) -> None:
    """1,000 tables: the standard error of 5 % is 0.7 points."""
    assert _wrong(rows, 1000, chance, 943, alike) < 0.05 + 3 * 0.007


def test_a_difference_between_two_rows_is_seen_as_often_as_by_wilcoxons_test() -> None:
    """HR@10 of 0.12 against 0.10, 943 users, alike to nine tenths: seen in over half of the tables by either test."""
    random = np.random.default_rng(7)
    flips = wilcoxon = 0
    for _ in range(200):
        values = _hits(random, [0.12, 0.1], 943, 0.9)
        flips += bool(p_between(values, _best(values), flips=1000).min() < 0.05)
        wilcoxon += bool(stats.wilcoxon(values[:, 0], values[:, 1]).pvalue < 0.05)
    assert wilcoxon > 80
    assert abs(flips - wilcoxon) <= 10


def test_holm_over_columns_by_hand() -> None:
    """Three columns. The second ends first, at 3 * 0.01; then a p counts twice, but never less than that 0.03.

    The first ends next, at 2 * 0.02 = 0.04, and leaves the third's last p 0.3, lifted by nothing.
    """
    found = holm_over_columns([[0.001, 0.02], [0.002, 0.01], [0.004, 0.3]])
    assert found[1] == pytest.approx([0.006, 0.03])
    assert found[0] == pytest.approx([0.003, 0.04])
    assert found[2] == pytest.approx([0.012, 0.3])
    assert holm_over_columns([[0.6], [0.7]]) == [[1.0], [1.0]]
    assert holm_over_columns([[0.01], []]) == [[0.01], []]
    assert holm_over_columns([]) == []


def test_with_one_row_a_column_it_is_holms_correction() -> None:
    """Rising: 0.005 * 4, then 0.01 * 3 = 0.03, 0.03 * 2 = 0.06, and 0.04 * 1 is lifted to 0.06."""
    found = holm_over_columns([[0.01], [0.04], [0.03], [0.005]])
    assert [p for (p,) in found] == pytest.approx([0.03, 0.06, 0.06, 0.02])


@settings(max_examples=100)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=6))
def test_the_correction_keeps_the_order_in_a_column_and_lies_between_p_and_bonferroni(p: list[list[float]]) -> None:
    found = holm_over_columns(p)
    for own, corrected in zip(p, found, strict=True):
        for one, after in zip(own, corrected, strict=True):
            assert one <= after <= min(1, one * len(p))
        order = sorted(range(len(own)), key=lambda place: own[place])
        assert all(corrected[a] <= corrected[b] for a, b in pairwise(order))
    assert holm_over_columns(p[::-1]) == found[::-1]
