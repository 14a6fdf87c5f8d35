"""Pairs of single people cannot be told from pairs of no person in what is published."""

from __future__ import annotations

import numpy as np
import pytest

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.solved_sums import up_to_a_factor
from ownview.pages.leaving_out import _evened, _inverse


def sums_of(histories: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sums of pairs weighed at random below 1, which pairs fewer than two had, which one had, and counts."""
    together = histories.T @ histories
    weight = np.random.default_rng(1).random(together.shape)
    sums = together * (weight + weight.T) / 2
    few = together < 2
    np.fill_diagonal(few, False)
    np.fill_diagonal(sums, together.diagonal())
    return sums, few, together == 1, together.diagonal()


def test_sums_of_few_depend_on_counts_and_one_number_alone() -> None:
    draw = np.random.default_rng(0)
    histories = (draw.random((60, 40)) < 0.08).astype(float)
    sums, few, single, count = sums_of(histories)
    assert 0 < (few & single).sum() < 0.5 * few.sum()
    made = _evened(sums, few, single, count)
    there = few & (np.outer(count, count) > 0)
    ratio = made[there] / np.sqrt(np.outer(count, count))[there]
    assert ratio == pytest.approx(np.full(len(ratio), ratio[0]))
    assert made[few].sum() == pytest.approx(sums[few].sum())
    assert np.array_equal(made[~few], sums[~few])


def test_where_most_are_single_peoples_they_are_noughts() -> None:
    histories = np.kron(np.eye(6), np.ones((1, 2)))[:, :4] + np.eye(6, 4)
    sums, few, single, count = sums_of(np.minimum(histories, 1))
    few &= single
    assert (_evened(sums, few, single, count)[few] == 0).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_not_solved_back(wrong: float) -> None:
    """A file may say so; the page is made without them, and does not look for a positive matrix for ever."""
    weights = np.full((6, 6), 0.1)
    weights[0, 1] = wrong
    assert isinstance(up_to_a_factor(weights), Inapplicable)


@pytest.mark.parametrize("least", [-5.0, 0.0, 2.0])
def test_what_is_not_positive_definite_is_raised_until_it_is(least: float) -> None:
    sums = np.array([[3.0, 4.0, 0.0], [4.0, 3.0, 0.0], [0.0, 0.0, least]])
    raised = np.linalg.inv(_inverse(sums))
    more = np.diag(raised - sums)
    assert more == pytest.approx(np.full(3, more[0]))
    assert more[0] > 0
    assert np.linalg.eigvalsh(raised).min() > 0
