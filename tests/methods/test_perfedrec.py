"""PerFedRec's rounds, worked out step by step with plain arithmetic, in the even world of golden.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview import PerFedRec
from ownview.round.scorers import scorer_of
from tests.methods.golden import ITEMS, POSITIVES, AdamByHand, Matrix, Vector, dot, federation, sigmoid

SIZE, EPOCHS, RATE, LAYERS = 2, 2, 0.05, 2
CLIENTS = (0, 1)

# Each client has two positives and two negatives twice each: in the order of rows, negatives 0 and 1 are the lower item
# and 2 and 3 the higher. 7919 = 3 (mod 4), so that in round t the first positive gets negatives 3t and 3t + 1 (mod 4).
PARTNERS = {1: ((3, 0), (1, 2)), 2: ((2, 3), (0, 1)), 3: ((1, 2), (3, 0))}


def _edges(client: int) -> Vector:
    return [LAYERS / math.sqrt(2) if i in POSITIVES[client] else 0.0 for i in range(ITEMS)]


def _vectors(client: int, user: Vector, table: Matrix) -> tuple[Vector, Matrix]:
    """u' and q'."""
    edges = _edges(client)
    mine = [(user[j] + sum(edges[i] * table[i][j] for i in range(ITEMS))) / (LAYERS + 1) for j in range(SIZE)]
    items = [[(table[i][j] + edges[i] * user[j]) / (LAYERS + 1) for j in range(SIZE)] for i in range(ITEMS)]
    return mine, items


def _errors(client: int, scores: Vector, number: int) -> Vector:
    """d(mean over pairs of log(1 + exp(x_n - x_p)))/d(score of each item)."""
    positives = POSITIVES[client]
    lower, higher = (i for i in range(ITEMS) if i not in positives)
    errors = [0.0] * ITEMS
    for positive, partners in zip(positives, PARTNERS[number], strict=True):
        for negative in ((lower, lower, higher, higher)[k] for k in partners):
            slope = sigmoid(scores[negative] - scores[positive]) / 4
            errors[negative] += slope
            errors[positive] -= slope
    return errors


def _train(client: int, user: Vector, table: Matrix, number: int) -> None:
    moments = {(k, j): AdamByHand() for k in range(-1, ITEMS) for j in range(SIZE)}
    edges = _edges(client)
    for _ in range(EPOCHS):
        mine, items = _vectors(client, user, table)
        errors = _errors(client, [dot(mine, row) for row in items], number)
        towards = [sum(errors[i] * items[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        away = sum(errors[i] * edges[i] for i in range(ITEMS))
        for j in range(SIZE):
            gradient = (towards[j] + away * mine[j]) / (LAYERS + 1)
            rows = [(errors[i] * mine[j] + edges[i] * towards[j]) / (LAYERS + 1) for i in range(ITEMS)]
            user[j] = moments[-1, j].move(user[j], gradient, RATE)
            for i in range(ITEMS):
                table[i][j] = moments[i, j].move(table[i][j], rows[i], RATE)


def _mean(tables: list[Matrix]) -> Matrix:
    return [[sum(table[i][j] for table in tables) / len(tables) for j in range(SIZE)] for i in range(ITEMS)]


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("clusters", [1, 2])
def test_perfedrec(clusters: int, engine: str) -> None:
    """One cluster has both clients; of two, each client is one, since their vectors differ."""
    method = PerFedRec(
        embedding_size=SIZE, clusters=clusters, layers=LAYERS, learning_rate=RATE, negatives=2, local_epochs=EPOCHS
    )
    one = federation(method, engine)
    begun = {name: value.tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}
    assert begun["history"] == [[1, 1, 0, 0], [0, 1, 1, 0]]
    users, means = begun["user"], begun["cluster"]
    for number in (1, 2, 3):
        one.round(number)
        tables = [[list(row) for row in mean] for mean in means]
        for u in CLIENTS:
            _train(u, users[u], tables[u], number)
        common = _mean(tables)
        means = [common] * 2 if clusters == 1 else tables
        values, axes = one.predicting(torch.tensor(CLIENTS), None)
        assert axes["everybody"] is None
        for name, expected in {"user": users, "items": tables, "cluster": means, "everybody": common}.items():
            assert values[name].tolist() == pytest.approx(np.array(expected), abs=1e-9), name
        assert one.server.reported["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
    models = [[tables[u], means[u], common] for u in CLIENTS]
    scores = []
    for u in CLIENTS:
        vectors = [_vectors(u, users[u], table) for table in models[u]]
        scores.append([sum(dot(mine, items[i]) for mine, items in vectors) / 3 for i in range(ITEMS)])
    scorer = scorer_of(one)
    assert scorer.scores(torch.tensor(CLIENTS), None).tolist() == pytest.approx(np.array(scores), abs=1e-9)
    few = scorer.scores(torch.tensor(CLIENTS), torch.tensor([[3, 0], [2, 0]]))  # what it has in training is not at hand
    assert few.tolist() == pytest.approx(
        np.array([[scores[0][3], scores[0][0]], [scores[1][2], scores[1][0]]]), abs=1e-9
    )
