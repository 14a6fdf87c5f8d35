"""FedEASE's round in fractions (the world is the one of golden.py), and the same model computed centrally."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ownview import FedEASE, FederationOptions
from ownview.data.datasets.catalog import load
from ownview.data.splitting.splits import Split
from ownview.evaluation.metrics import means
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.ranking import rankers
from ownview.round.scorers import scorer_of
from ownview.testing.worlds import federation as small_federation
from ownview.testing.worlds import small_world
from tests.methods.golden import ENVELOPE, federation, heading, scores_of_all

Matrix = NDArray[np.float64]

EASE = FedEASE(regularization=200.0, nearness=math.inf, recency=math.inf)

# G + I = [[2, 1, 0, 0], [1, 3, 1, 0], [0, 1, 2, 0], [0, 0, 0, 1]], whose first block has the determinant 8 and the
# inverse [[5, -2, 1], [-2, 4, -2], [1, -2, 5]] / 8; every column over minus its diagonal is B.
GRAM = [[1, 1, 0, 0], [1, 2, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
WEIGHTS = [[0, 1 / 2, -1 / 5, 0], [2 / 5, 0, 2 / 5, 0], [-1 / 5, 1 / 2, 0, 0], [0, 0, 0, 0]]
SCORES = [[2 / 5, 1 / 2, 1 / 5, 0], [1 / 5, 1 / 2, 2 / 5, 0]]

# Two items: how many and which, and their three pairs, eight bytes a number here.
FIRST_UPLOAD = ENVELOPE + heading("pairs", 2) + 4 * (1 + 2) + 3 * 8


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fedease(engine: str) -> None:
    one = federation(FedEASE(regularization=1.0, nearness=math.inf, recency=math.inf), engine)
    report = one.round(1)
    assert one.server.held["gram"].tolist() == GRAM
    assert one.server.shared["weights"].numpy() == pytest.approx(np.array(WEIGHTS), abs=1e-12)
    assert np.array(scores_of_all(one)) == pytest.approx(np.array(SCORES), abs=1e-12)
    assert report.bytes_up == FIRST_UPLOAD
    # After the round clients receive the six weights above with their positions.
    assert report.bytes_down == ENVELOPE + heading("weights", 2) + 4 + 6 * (4 + 8)
    assert report.bytes_dense == 12 + 16 * 8


def test_a_client_is_counted_once_however_often_it_takes_part() -> None:
    one = federation(EASE, "vector", clients=1)
    reports = [one.round(number) for number in range(1, 7)]
    assert one.server.held["gram"].tolist() == GRAM
    assert sorted(report.bytes_up for report in reports) == [0, 0, 0, 0, FIRST_UPLOAD, FIRST_UPLOAD]


def test_with_partial_participation_the_gram_is_of_those_that_took_part() -> None:
    split = small_world()
    one = small_federation(EASE, split, options=FederationOptions(clients="0.3"))
    one.round(1)
    took_part = one.clients.own["told"].bool().numpy()
    assert 0 < took_part.sum() < split.num_users
    history = _history(split)[took_part]
    assert one.server.held["gram"].numpy() == pytest.approx(history.T @ history, abs=0)


def _history(split: Split) -> Matrix:
    seen = np.zeros((split.num_users, split.num_items))
    for user in range(split.num_users):
        seen[user, split.train.of(user).numpy()] = 1
    return seen


def _central(split: Split, regularization: float) -> Matrix:
    """EASE^R as its paper writes it."""
    seen = _history(split)
    inverse = np.linalg.inv(seen.T @ seen + regularization * np.eye(split.num_items))
    weights = np.eye(split.num_items) - inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return seen @ weights


class _Table:
    """Scores that are known."""

    def __init__(self, scores: Matrix) -> None:
        self.known = torch.from_numpy(scores).float()

    def scores(self, users: torch.Tensor, items: torch.Tensor | None) -> torch.Tensor:
        return self.known[users] if items is None else self.known[users].gather(1, items)


def _assert_central(split: Split, dtype: torch.dtype, tolerance: float) -> None:
    one = small_federation(EASE, split, dtype=dtype)
    one.round(1)
    central = _central(split, 200.0)
    found = scorer_of(one).scores(torch.arange(split.num_users), None).double().numpy()
    assert np.abs(found - central).max() < tolerance
    for ranker in rankers(HONEST, split, seed=0, device=torch.device("cpu"), memory=10**8):
        ours = means(ranker.rank(scorer_of(one)), (5, 10, 20))
        assert ours == pytest.approx(means(ranker.rank(_Table(central)), (5, 10, 20)), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_the_central_model(dtype: torch.dtype) -> None:
    _assert_central(small_world(), dtype, 1e-6)


def test_it_is_the_central_model_on_books() -> None:
    _assert_central(HONEST.prepare(load("goodbooks")), torch.float64, 1e-6)
