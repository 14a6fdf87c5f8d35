"""pFedGraph's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from ownview import PFedGraph
from tests.methods.golden import (
    ITEMS,
    UNEVEN_COUNTS,
    UNEVEN_SHARES,
    AdamByHand,
    Matrix,
    Vector,
    dot,
    uneven_errors,
    uneven_federation,
)

SIZE, EPOCHS = 2, 3
RATE, ALPHA, GUIDANCE = 0.05, 0.8, 0.4
CLIENTS = (0, 1)


def _pull(number: int, table: Matrix, mixture: Matrix) -> Matrix:
    """d(-lambda cos)/d(table), the cosine over the batch's rows."""
    counts = UNEVEN_COUNTS[number]
    product = sum(counts[i] * dot(table[i], mixture[i]) for i in range(ITEMS))
    mine = sum(counts[i] * dot(table[i], table[i]) for i in range(ITEMS))
    theirs = sum(counts[i] * dot(mixture[i], mixture[i]) for i in range(ITEMS))
    root = math.sqrt(mine * theirs + 1e-12)
    return [
        [-GUIDANCE * counts[i] * (mixture[i][j] / root - product * theirs * table[i][j] / root**3) for j in range(SIZE)]
        for i in range(ITEMS)
    ]


def _train(number: int, user: Vector, table: Matrix, mixture: Matrix) -> None:
    """User vector and table together by Adam, in place."""
    moments = {(k, j): AdamByHand() for k in range(-1, ITEMS) for j in range(SIZE)}
    for _ in range(EPOCHS):
        errors = uneven_errors(number, [dot(user, row) for row in table])
        pull = _pull(number, table, mixture)
        user_gradient = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        gradient = [[errors[i] * user[j] + pull[i][j] for j in range(SIZE)] for i in range(ITEMS)]
        for j in range(SIZE):
            user[j] = moments[-1, j].move(user[j], user_gradient[j], RATE)
            for i in range(ITEMS):
                if UNEVEN_COUNTS[number][i]:
                    table[i][j] = moments[i, j].move(table[i][j], gradient[i][j], RATE)


def _weights(uploads: list[Matrix], initial: Matrix) -> list[tuple[float, float]]:
    """The nearest points of the segment from (1, 0) to (0, 1) to p + cos / (2 alpha)."""
    changes = [[table[i][j] - initial[i][j] for i in range(ITEMS) for j in range(SIZE)] for table in uploads]
    cosine = dot(*changes) / math.sqrt(dot(changes[0], changes[0]) * dot(changes[1], changes[1]))
    found = []
    for likeness in ((1.0, cosine), (cosine, 1.0)):
        target = [UNEVEN_SHARES[v] + likeness[v] / (2 * ALPHA) for v in CLIENTS]
        first = min(max((target[0] - target[1] + 1) / 2, 0.0), 1.0)
        found.append((first, 1 - first))
    return found


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_pfedgraph(engine: str) -> None:
    method = PFedGraph(
        embedding_size=SIZE, alpha=ALPHA, guidance=GUIDANCE, learning_rate=RATE, negatives=1, local_epochs=EPOCHS
    )
    one = uneven_federation(method, engine)

    def seen() -> dict[str, list[Any]]:
        return {name: value.tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}

    begun = seen()
    users, mixtures, initial = begun["user"], begun["mixture"], begun["items"][0]
    for number in (1, 2, 3):
        one.round(number)
        tables = [[list(row) for row in mixture] for mixture in mixtures]
        for u in CLIENTS:
            _train(u, users[u], tables[u], mixtures[u])
        weights = _weights(tables, initial)
        mixtures = [
            [[w[0] * tables[0][i][j] + w[1] * tables[1][i][j] for j in range(SIZE)] for i in range(ITEMS)]
            for w in weights
        ]
        found = seen()
        for name, expected in {"user": users, "items": tables, "mixture": mixtures}.items():
            assert found[name] == pytest.approx(np.array(expected), abs=1e-9), name
    assert 0 < weights[1][0] < weights[0][0] < 1, "the mixtures must differ for this test to mean something"
