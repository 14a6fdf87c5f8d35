"""GPFedRec's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from ownview import GPFedRec
from tests.methods.golden import ITEMS, UNEVEN_COUNTS, Matrix, Vector, dot, uneven_errors, uneven_federation

SIZE, HIDDEN, EPOCHS = 2, 4, 2
RATE, FACTOR, GUIDANCE = 0.1, 2.0, 0.3
CLIENTS = (0, 1)


@dataclass
class Client:
    """What one client holds; `user_half` and `item_half` are the two halves of the first layer."""

    user: Vector
    user_half: Matrix
    item_half: Matrix
    bias0: Vector
    weight1: Vector
    bias1: float
    table: Matrix
    guide: Matrix
    over: str

    def before_relu(self, i: int) -> Vector:
        return [
            sum(self.user[j] * self.user_half[j][k] + self.table[i][j] * self.item_half[j][k] for j in range(SIZE))
            + self.bias0[k]
            for k in range(HIDDEN)
        ]

    def step(self, number: int) -> None:
        """One batch: back through the network by hand, then every part moves at its own rate."""
        counts = UNEVEN_COUNTS[number]
        hidden = [self.before_relu(i) for i in range(ITEMS)]
        active = [[max(one, 0.0) for one in row] for row in hidden]
        errors = uneven_errors(number, [dot(active[i], self.weight1) + self.bias1 for i in range(ITEMS)])
        back = [[errors[i] * self.weight1[k] * (hidden[i][k] > 0) for k in range(HIDDEN)] for i in range(ITEMS)]
        summed = [sum(back[i][k] for i in range(ITEMS)) for k in range(HIDDEN)]
        user = [sum(self.user_half[j][k] * summed[k] for k in range(HIDDEN)) for j in range(SIZE)]
        item_half = [
            [sum(self.table[i][j] * back[i][k] for i in range(ITEMS)) for k in range(HIDDEN)] for j in range(SIZE)
        ]
        shares = [count / sum(counts) if self.over == "batch" else (count > 0) / ITEMS for count in counts]
        pull = [
            [2 * GUIDANCE * shares[i] * (self.table[i][j] - self.guide[i][j]) / SIZE for j in range(SIZE)]
            for i in range(ITEMS)
        ]
        table = [
            [sum(self.item_half[j][k] * back[i][k] for k in range(HIDDEN)) + pull[i][j] for j in range(SIZE)]
            for i in range(ITEMS)
        ]
        self.weight1 = [
            self.weight1[k] - RATE * sum(errors[i] * active[i][k] for i in range(ITEMS)) for k in range(HIDDEN)
        ]
        self.bias1 -= RATE * sum(errors)
        self.bias0 = [self.bias0[k] - RATE * summed[k] for k in range(HIDDEN)]
        for j in range(SIZE):
            for k in range(HIDDEN):
                self.user_half[j][k] -= RATE * self.user[j] * summed[k]
                self.item_half[j][k] -= RATE * item_half[j][k]
        self.user = [self.user[j] - RATE * FACTOR * user[j] for j in range(SIZE)]
        self.table = [
            [self.table[i][j] - RATE * FACTOR * ITEMS * table[i][j] for j in range(SIZE)] for i in range(ITEMS)
        ]


def _weights(tables: list[Matrix], threshold: float, released: bool) -> list[Vector]:
    """Of both uploads for each client."""
    flat = [[value for row in table for value in row] for table in tables]
    cosine = dot(flat[0], flat[1]) / math.sqrt(dot(flat[0], flat[0]) * dot(flat[1], flat[1]))
    own, other = (0.0, 1 - cosine) if released else (1.0, cosine)
    bound = threshold * (own + other) / 2
    near = [[own > bound, other > bound], [other > bound, own > bound]]
    near = [row if any(row) else [u == 0, u == 1] for u, row in enumerate(near)]
    return [[one / sum(row) for one in row] for row in near]


def _mixed(tables: list[Matrix], weights: Vector) -> Matrix:
    return [[weights[0] * tables[0][i][j] + weights[1] * tables[1][i][j] for j in range(SIZE)] for i in range(ITEMS)]


# By the rule, two clients are each alone at tau = 1, together at a low tau, and swapped with distances for similarity.
CASES = {"alone": (1.0, False, [1, 0]), "together": (0.3, False, [0.5, 0.5]), "swapped": (1.0, True, [0, 1])}


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("over", ["batch", "table"])
@pytest.mark.parametrize("case", CASES)
def test_gpfedrec(case: str, over: str, engine: str) -> None:
    threshold, released, expected_weights = CASES[case]
    method = GPFedRec(
        embedding_size=SIZE, hidden_layers=(HIDDEN,), guidance=GUIDANCE, threshold=threshold, released=released,
        guided_over=over, learning_rate=RATE, rate_factor=FACTOR, negatives=1, local_epochs=EPOCHS,
    )  # fmt: skip
    one = uneven_federation(method, engine)

    def seen() -> dict[str, list[Any]]:
        values, axes = one.predicting(torch.tensor(CLIENTS), None)
        assert axes["mean"] is None
        return {name: value.tolist() for name, value in values.items()}

    begun = seen()
    clients = [
        Client(
            begun["user"][u], begun["weight0"][u][:SIZE], begun["weight0"][u][SIZE:], begun["bias0"][u],
            [row[0] for row in begun["weight1"][u]], begun["bias1"][u][0], begun["items"][u], begun["guide"][u],
            over,
        )
        for u in CLIENTS
    ]  # fmt: skip
    mean = begun["mean"]
    for number in (1, 2, 3):
        one.round(number)
        for u, client in enumerate(clients):
            client.table = [list(row) for row in mean]
            for _ in range(EPOCHS):
                client.step(u)
        uploads = [[list(row) for row in client.table] for client in clients]
        weights = _weights(uploads, threshold, released)
        assert weights[0] == expected_weights
        for u, client in enumerate(clients):
            client.guide = _mixed(uploads, weights[u])
        mean = [[(clients[0].guide[i][j] + clients[1].guide[i][j]) / 2 for j in range(SIZE)] for i in range(ITEMS)]
        found = seen()
        expected = {
            "user": [client.user for client in clients],
            "items": [client.table for client in clients],
            "guide": [client.guide for client in clients],
            "mean": mean,
            "weight0": [[*client.user_half, *client.item_half] for client in clients],
            "bias0": [client.bias0 for client in clients],
            "weight1": [[[value] for value in client.weight1] for client in clients],
            "bias1": [[client.bias1] for client in clients],
        }
        assert set(found) == set(expected)
        for name, values in expected.items():
            assert found[name] == pytest.approx(np.array(values), abs=1e-9), name
    signs = {one > 0 for client in clients for i in range(ITEMS) for one in client.before_relu(i)}
    assert signs == {True, False}, "both sides of the ReLU must be met for this test to mean something"
    moved = np.abs(np.array(found["items"]) - np.array(begun["items"])).max()
    assert moved > 0.01
