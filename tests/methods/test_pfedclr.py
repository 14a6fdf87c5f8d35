"""PFedCLR's round, worked out step by step with plain arithmetic (the world is the one of golden.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ownview import PFedCLR
from tests.methods.golden import ITEMS, AdamByHand, changed_rows, dot, error, federation

Matrix = list[list[float]]


def _step_one(client: int, user: list[float], table: Matrix, epochs: int, rate: float) -> None:
    """The user vector frozen, the table moves on u . q_i."""
    moments = {(i, j): AdamByHand() for i in range(ITEMS) for j in range(2)}
    for _ in range(epochs):
        errors = [error(client, i, dot(user, table[i])) for i in range(ITEMS)]
        for i in range(ITEMS):
            table[i] = [moments[i, j].move(table[i][j], errors[i] * user[j], rate) for j in range(2)]


def _step_two(
    client: int, user: list[float], table: Matrix, rows: Matrix, basis: Matrix, epochs: int, rates: tuple[float, float]
) -> None:
    """The table frozen; u (first rate), A and B (second rate) move together on u . (q_i + a_i B)."""
    size, rank = 2, len(basis)
    moments = {key: AdamByHand() for key in _places(size, rank)}
    for _ in range(epochs):
        seen = [
            [table[i][j] + sum(rows[i][k] * basis[k][j] for k in range(rank)) for j in range(size)]
            for i in range(ITEMS)
        ]
        errors = [error(client, i, dot(user, seen[i])) for i in range(ITEMS)]
        user_gradient = [sum(errors[i] * seen[i][j] for i in range(ITEMS)) for j in range(size)]
        rows_gradient = [[errors[i] * dot(basis[k], user) for k in range(rank)] for i in range(ITEMS)]
        basis_gradient = [
            [sum(errors[i] * rows[i][k] for i in range(ITEMS)) * user[j] for j in range(size)] for k in range(rank)
        ]
        user[:] = [moments["u", 0, j].move(user[j], user_gradient[j], rates[0]) for j in range(size)]
        for i in range(ITEMS):
            rows[i] = [moments["a", i, k].move(rows[i][k], rows_gradient[i][k], rates[1]) for k in range(rank)]
        for k in range(rank):
            basis[k] = [moments["b", k, j].move(basis[k][j], basis_gradient[k][j], rates[1]) for j in range(size)]


def _places(size: int, rank: int) -> list[tuple[str, int, int]]:
    return (
        [("u", 0, j) for j in range(size)]
        + [("a", i, k) for i in range(ITEMS) for k in range(rank)]
        + [("b", k, j) for k in range(rank) for j in range(size)]
    )


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_pfedclr(engine: str, fresh: bool) -> None:
    method = PFedCLR(
        embedding_size=2, rank=2, negatives=2, local_epochs=2, learning_rate=0.05, buffer_rate=0.03, fresh_buffer=fresh
    )
    one = federation(method, engine)
    table = one.server.shared["items"].tolist()
    users, bases = one.clients.own["user"].tolist(), one.clients.own["buffer_basis"].tolist()
    rows = [[[0.0, 0.0] for _ in range(ITEMS)] for _ in range(2)]
    for number in (1, 2):
        one.round(number)
        trained = [[list(row) for row in table] for _ in range(2)]
        for client in range(2):
            rows[client] = [[0.0, 0.0] for _ in range(ITEMS)] if fresh else rows[client]
            _step_one(client, users[client], trained[client], epochs=2, rate=0.05)
            _step_two(client, users[client], trained[client], rows[client], bases[client], 2, (0.05, 0.03))
        table = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(2)] for i in range(ITEMS)]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
    predicting = one.predicting(torch.tensor([0, 1]), None)[0]
    assert predicting["items"].tolist() == pytest.approx(np.array(trained), abs=1e-9)
    assert predicting["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
    assert predicting["buffer_rows"].tolist() == pytest.approx(np.array(rows), abs=1e-9)
    assert predicting["buffer_basis"].tolist() == pytest.approx(np.array(bases), abs=1e-9)


@pytest.mark.parametrize("variant", ["cf", "af"])
def test_the_variants_move_what_they_say(variant: str) -> None:
    """Step 1 of `af` moves the user vector with the table; of `cf` it does not; the buffer moves in both."""
    one = federation(PFedCLR(embedding_size=2, negatives=2, local_epochs=1, variant=variant), "vector")
    first = [name for part in one.client.phases[0].steps[0].parts for name in part.names]
    assert first == (["user", "items"] if variant == "af" else ["items"])
    one.round(1)
    assert changed_rows(one.clients.tables["buffer"])[0].all()
    assert float(one.predicting(torch.tensor([0]), None)[0]["buffer"].abs().sum()) > 0


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("variant", ["clr", "af"])
def test_the_tables_gradient_is_clipped_in_every_step(engine: str, variant: str) -> None:
    """Two steps on the table with a bound that binds: the second's moments remember the first's clipped gradient."""
    bound, rate = 0.05, 0.05
    method = PFedCLR(
        embedding_size=2, negatives=2, local_epochs=2, learning_rate=rate, variant=variant, clip_gradient=bound
    )
    one = federation(method, engine)
    table, users = one.server.shared["items"].tolist(), one.clients.own["user"].tolist()
    one.round(1)
    found = one.predicting(torch.tensor([0, 1]), None)[0]["items"]
    for client, user in enumerate(users):
        own, norms = [list(row) for row in table], []
        moments = {(i, j): AdamByHand() for i in range(-1, ITEMS) for j in range(2)}
        for _ in range(2):
            errors = [error(client, i, dot(user, own[i])) for i in range(ITEMS)]
            for_user = [sum(errors[i] * own[i][j] for i in range(ITEMS)) for j in range(2)]
            slopes = [[errors[i] * user[j] for j in range(2)] for i in range(ITEMS)]
            norms.append(sum(dot(row, row) for row in slopes) ** 0.5)
            factor = min(1.0, bound / norms[-1])
            for i in range(ITEMS):
                own[i] = [moments[i, j].move(own[i][j], factor * slopes[i][j], rate) for j in range(2)]
            if variant == "af":  # whose user vector moves in step 1, unclipped
                user[:] = [moments[-1, j].move(user[j], for_user[j], rate) for j in range(2)]
        assert min(norms) > bound
        assert found[client].tolist() == pytest.approx(np.array(own), abs=1e-9)
