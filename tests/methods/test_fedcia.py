"""FedCIA's round, number by number (the world is the one of golden.py)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview import FedCIA
from ownview.seam.training import ANY_WORLD
from tests.methods.golden import (
    ENVELOPE,
    ITEMS,
    POSITIVES,
    AdamByHand,
    Matrix,
    Vector,
    dot,
    error,
    federation,
    heading,
    scores_of_all,
)

DECAY, RATE, FIT_RATE = 0.05, 0.1, 0.02


def _counts(client: int, item: int) -> int:
    return 1 if item in POSITIVES[client] else 2


def _errors(client: int, user: Vector, row: Vector, item: int, loss: str) -> Vector:
    """d(mean loss)/d(u_j v_ij), for both j."""
    positive = item in POSITIVES[client]
    if loss == "cross-entropy":
        return [error(client, item, dot(user, row))] * 2
    if loss == "squares":
        return [2 * _counts(client, item) * (dot(user, row) - positive) / 6] * 2
    return [2 * _counts(client, item) * (user[j] * row[j] - positive) / 12 for j in range(2)]


def _train(client: int, user: Vector, table: Matrix, loss: str) -> None:
    moments = {(i, j): AdamByHand() for i in range(-1, ITEMS) for j in range(2)}
    for _ in range(2):
        errors = [_errors(client, user, table[i], i, loss) for i in range(ITEMS)]
        of_user = [sum(errors[i][j] * table[i][j] for i in range(ITEMS)) + DECAY * user[j] for j in range(2)]
        of_table = [
            [errors[i][j] * user[j] + DECAY * _counts(client, i) / 6 * table[i][j] for j in range(2)]
            for i in range(ITEMS)
        ]
        user[:] = [moments[-1, j].move(user[j], of_user[j], RATE) for j in range(2)]
        for i in range(ITEMS):
            table[i] = [moments[i, j].move(table[i][j], of_table[i][j], RATE) for j in range(2)]


def _similarities(table: Matrix) -> Matrix:
    return [[dot(left, right) for right in table] for left in table]


def _fit(table: Matrix, target: Matrix) -> Matrix:
    for _ in range(3):
        apart = [
            [one - other for one, other in zip(*rows, strict=True)]
            for rows in zip(_similarities(table), target, strict=True)
        ]
        norm = math.sqrt(sum(x**2 for row in apart for x in row))
        pull = [
            [2 / norm * sum(apart[i][k] * table[k][j] for k in range(ITEMS)) for j in range(2)] for i in range(ITEMS)
        ]
        table = [[table[i][j] - FIT_RATE * (pull[i][j] + DECAY * table[i][j]) for j in range(2)] for i in range(ITEMS)]
    return table


@pytest.mark.parametrize("loss", ["cross-entropy", "squares", "released"])
@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fedcia(engine: str, loss: str) -> None:
    method = FedCIA(
        embedding_size=2, negatives=2, local_epochs=2, learning_rate=RATE, loss=loss, fit_steps=3, fit_rate=FIT_RATE,
        decay=DECAY, noise=0.0, initial_scale=1.0,
    )  # fmt: skip
    one = federation(method, engine)
    clients = torch.arange(2)
    users, tables = one.clients.own["user"].tolist(), one.clients.whole("items", clients).tolist()
    assert tables[0] == tables[1]  # everybody starts from the same values
    for number in (1, 2):
        report = one.round(number)
        for client in range(2):
            _train(client, users[client], tables[client], loss)
        sides = [_similarities(table) for table in tables]
        mean = [[(sides[0][i][k] + sides[1][i][k]) / 2 for k in range(ITEMS)] for i in range(ITEMS)]
        assert one.server.shared["similarities"].numpy() == pytest.approx(np.array(mean), abs=1e-9)
        tables = [_fit(table, mean) for table in tables]
        assert one.clients.whole("items", clients).numpy() == pytest.approx(np.array(tables), abs=1e-8)
        # Of the symmetric matrix ten values go up, with the numbers of its four rows; all sixteen come down.
        assert report.bytes_up == ENVELOPE + heading("similarities", 2) + 4 * (1 + ITEMS) + 10 * 8
        assert report.bytes_down == ENVELOPE + heading("similarities", 2) + ITEMS**2 * 8
    expected = [[dot(users[c], tables[c][i]) for i in range(ITEMS)] for c in range(2)]
    assert np.array(scores_of_all(one)) == pytest.approx(np.array(expected), abs=1e-8)


def test_its_own_noise_is_laplace_noise_on_every_number() -> None:
    quiet, noisy = (federation(FedCIA(noise=noise, negatives=2), "vector") for noise in (0.0, 0.5))
    quiet.round(1)
    noisy.round(1)
    apart = noisy.server.shared["similarities"] - quiet.server.shared["similarities"]
    assert bool((apart != 0).all())
    assert bool((apart == apart.T).all())
    replaced = federation(FedCIA(noise=0.0, negatives=2), "vector", privacy="laplace:0.5")
    replaced.round(1)
    assert bool((replaced.server.shared["similarities"] == noisy.server.shared["similarities"]).all())


def test_a_table_that_fits_already_is_not_thrown_away() -> None:
    # |V V^T - F| is nothing but rounding here, 1e-4 of |F| and more in float32.
    table = 100 * torch.randn(60, 16, generator=torch.Generator().manual_seed(0))
    work = FedCIA().reporting(ANY_WORLD)
    assert work.after_round is not None
    fitted = work.after_round({"items": table, **work.prepare_download({"similarities": table @ table.T})})["items"]
    assert float(fitted.norm() / table.norm()) == pytest.approx(1.0, abs=0.1)
