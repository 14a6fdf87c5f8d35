"""FedFast's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ownview import FedFast
from tests.methods.golden import ITEMS, UNEVEN_COUNTS, AdamByHand, Matrix, Vector, dot, uneven_errors, uneven_federation

SIZE, EPOCHS, RATE, DECAY = 2, 3, 0.05, 0.7


def _train(number: int, user: Vector, table: Matrix) -> None:
    """User vector and the rows of the client's samples together by Adam, in place."""
    moments = {(k, j): AdamByHand() for k in range(-1, ITEMS) for j in range(SIZE)}
    for _ in range(EPOCHS):
        errors = uneven_errors(number, [dot(user, row) for row in table])
        gradient = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        rows = [[errors[i] * user[j] for j in range(SIZE)] for i in range(ITEMS)]
        for j in range(SIZE):
            user[j] = moments[-1, j].move(user[j], gradient[j], RATE)
            for i in range(ITEMS):
                if UNEVEN_COUNTS[number][i]:
                    table[i][j] = moments[i, j].move(table[i][j], rows[i][j], RATE)


def _combined(table: Matrix, trained: list[Matrix]) -> Matrix:
    """Row by row the mean of changes, weighed by their L1 norms."""
    new = []
    for i in range(ITEMS):
        changes = [[one[i][j] - table[i][j] for j in range(SIZE)] for one in trained]
        weights = [sum(abs(value) for value in change) for change in changes]
        moves = [sum(w * c[j] for w, c in zip(weights, changes, strict=True)) for j in range(SIZE)]
        new.append([table[i][j] + (moves[j] / sum(weights) if sum(weights) else 0.0) for j in range(SIZE)])
    return new


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("clients", ["all", "1"])
def test_fedfast(clients: str, engine: str) -> None:
    """With one client a round and one cluster, the other client's vector follows by a decaying share."""
    method = FedFast(embedding_size=SIZE, clusters=1, decay=DECAY, learning_rate=RATE, negatives=1, local_epochs=EPOCHS)
    one = uneven_federation(method, engine, clients=clients)
    table, users = one.server.shared["items"].tolist(), one.clients.own["user"].tolist()
    chosen = []
    for number in (1, 2, 3):
        cohort = one.participants(number).tolist()
        chosen.append(cohort)
        one.round(number)
        before = [list(user) for user in users]
        trained = [[list(row) for row in table] for _ in cohort]
        for k, u in enumerate(cohort):
            _train(u, users[u], trained[k])
        table = _combined(table, trained)
        for other in {0, 1} - set(cohort):
            (delegate,) = cohort
            users[other] = [
                users[other][j] + DECAY**number * (users[delegate][j] - before[delegate][j]) for j in range(SIZE)
            ]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
        assert one.predicting(torch.arange(2), None)[0]["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
        assert one.server.reported["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
    assert [len(cohort) for cohort in chosen] == [2 if clients == "all" else 1] * 3
