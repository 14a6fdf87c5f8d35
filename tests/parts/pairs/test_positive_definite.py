"""EASE^R of sums: by parts, in place, in single precision, and of sums that noise has left without a factor."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.kept_weights import agreement, histories, lists
from torch import Tensor

from ownview.parts.pairs import positive_definite, tail
from ownview.parts.pairs.positive_definite import (
    KEPT,
    ease_inverse,
    ease_weights,
    inverse,
    residual,
    strongest,
    symmetrised,
    weights_of,
)
from ownview.parts.pairs.tail import tail_of

LAMBDA = 3.0


def _histories(clients: int = 40, common: int = 30, alone: int = 3, absent: int = 2) -> Tensor:
    """[n, m] some common items, `alone` items of every client that nobody else has, and items that nobody has."""
    random = np.random.default_rng(0)
    shared = random.random((clients, common)) < 0.3
    shared[:2] = True
    own = np.kron(np.eye(clients), np.ones((1, alone)))
    whole = np.concatenate([own, shared, np.zeros((clients, absent))], axis=1)
    return torch.from_numpy(whole[:, random.permutation(whole.shape[1])])


def _by_definition(gram: Tensor) -> Tensor:
    inverted: Tensor = torch.linalg.inv(gram.double() + LAMBDA * torch.eye(len(gram), dtype=torch.float64))
    return (-inverted / inverted.diagonal()).fill_diagonal_(0.0)


def test_items_of_one_client_are_eliminated_and_nothing_changes() -> None:
    history = _histories()
    gram = history.T @ history
    parts = tail_of(gram, LAMBDA)
    assert parts is not None
    assert len(parts.items) == 40 * 3 + 2
    assert (gram.diagonal()[torch.from_numpy(parts.rest)] >= 2).all()
    assert torch.allclose(ease_weights(gram, LAMBDA), _by_definition(gram), atol=1e-9)


def test_pairs_that_count_less_are_eliminated_alike() -> None:
    places = torch.arange(154, dtype=torch.float64)
    near = torch.exp(-(places[:, None] - places).abs() / 16)
    history = _histories(alone=3, common=32, absent=2)
    gram = sum((near * (row[:, None] * row) for row in history), torch.zeros_like(near))
    assert tail_of(gram, LAMBDA) is not None
    assert torch.allclose(ease_weights(gram, LAMBDA), _by_definition(gram), atol=1e-9)


def test_a_block_that_is_too_large_is_solved_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    history = torch.cat([_histories(), torch.zeros(40, 10)], dim=1).double()
    history[0, -10:] = 1.0
    gram = history.T @ history
    monkeypatch.setattr(tail, "_LARGEST_BLOCK", 5)
    parts = tail_of(gram, LAMBDA)
    assert parts is not None
    assert set(range(len(gram) - 10, len(gram))) <= set(parts.rest.tolist())
    assert torch.allclose(ease_weights(gram, LAMBDA), _by_definition(gram), atol=1e-9)


def test_where_everybody_has_everything_there_is_no_tail() -> None:
    assert tail_of(torch.full((20, 20), 7.0), LAMBDA) is None
    noisy = torch.randn(2000, 2000, generator=torch.Generator().manual_seed(0))
    assert tail_of(noisy, LAMBDA) is None, "rows that noise has filled are no tail"


@pytest.mark.parametrize("alone", [0, 3])
def test_single_precision_is_near(monkeypatch: pytest.MonkeyPatch, alone: int) -> None:
    history = _histories(alone=alone, absent=0)
    gram = history.T @ history
    monkeypatch.setattr(positive_definite, "MOST_IN_DOUBLE", 0)
    found = ease_weights(gram.float(), LAMBDA)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), _by_definition(gram), atol=1e-4)


def test_the_inverse_stands_where_the_matrix_was() -> None:
    history = _histories()
    matrix = history.T @ history + torch.eye(history.shape[1])
    kept, place = matrix.clone(), matrix.data_ptr()
    found = inverse(lambda: matrix)
    assert found.data_ptr() == place
    assert torch.allclose(found @ kept, torch.eye(len(kept), dtype=kept.dtype), atol=1e-9)
    assert torch.equal(found, found.T)


def test_weights_may_be_written_over_the_sum() -> None:
    seen = (torch.rand(60, 9, generator=torch.Generator().manual_seed(3)) < 0.4).float()
    gram = seen.T @ seen
    expected = ease_weights(gram.clone(), 2.0)
    found = ease_weights(gram, 2.0, in_place=True)
    assert found.data_ptr() == gram.data_ptr()
    assert torch.equal(found, expected)


def test_a_matrix_without_a_factor_is_inverted_like_any_other() -> None:
    gram = torch.diag(torch.tensor([5.0, -9.0, 4.0, 2.0], dtype=torch.float64)) + 0.5
    assert torch.allclose(ease_weights(gram, LAMBDA), _by_definition(gram), atol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 600])
def test_both_halves_are_averaged_in_place(size: int) -> None:
    lopsided = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = (lopsided + lopsided.T) / 2
    assert torch.equal(symmetrised(lopsided), expected)
    assert torch.equal(lopsided, expected)


def test_what_single_precision_cannot_solve_is_solved_in_double(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _histories(alone=0, absent=0)
    gram, weak = history.T @ history, 1e-6
    gram[0], gram[:, 0] = gram[1], gram[:, 1]  # two items that nothing but lambda tells apart
    gram[0, 0] = gram[1, 1]
    assert residual(gram.float(), weak, torch.linalg.inv((gram + weak * torch.eye(len(gram))).float())) > 1e-3
    monkeypatch.setattr(positive_definite, "MOST_IN_DOUBLE", 0)
    found = ease_inverse(gram.float(), weak)
    assert found.dtype == torch.float64
    assert residual(gram, weak, found) < 1e-6


def test_beyond_so_many_items_the_strongest_weights_of_a_row_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(600, 600, generator=draw)
    assert torch.equal(strongest(weights.clone(), 5), weights), "few items keep all of them"
    monkeypatch.setattr(positive_definite, "MOST_IN_DOUBLE", 599)
    found = strongest(weights.clone(), 5)
    assert (torch.count_nonzero(found, dim=1) == 5).all()
    kept = found != 0
    assert torch.equal(found[kept], weights[kept])
    least = found.abs().masked_fill(~kept, torch.inf).amin(1)
    assert (least[:, None] >= weights.abs().masked_fill(kept, 0)).all()


def test_lists_by_the_strongest_weights_and_single_precision_are_those_of_the_whole_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """99 % of the top ten by the weights that are kept, 99.9 % by all weights in single precision."""
    bought = histories(6_000, 3_000, 50_000)
    gram, people = torch.from_numpy((bought.T @ bought).toarray()), torch.arange(0, 6_000, 8)
    exact = lists(bought, weights_of(ease_inverse(gram.double(), 100.0)).float(), people)
    monkeypatch.setattr(positive_definite, "MOST_IN_DOUBLE", 1_000)
    single = weights_of(ease_inverse(gram, 100.0))
    assert single.dtype == torch.float32
    assert agreement(exact, lists(bought, single, people)) > 0.999
    assert agreement(exact, lists(bought, strongest(single), people)) > 0.99
    assert int(torch.count_nonzero(single, dim=1).median()) == KEPT, "more where several are as strong as the last"


def test_what_was_freed_is_given_back_before_the_matrix_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr(positive_definite, "give_freed_memory_back", lambda: happened.append("gave"))

    def made() -> Tensor:
        happened.append("made")
        return 2 * torch.eye(3, dtype=torch.float64)

    torch.testing.assert_close(inverse(made), torch.eye(3, dtype=torch.float64) / 2)
    assert happened == ["gave", "made"]
