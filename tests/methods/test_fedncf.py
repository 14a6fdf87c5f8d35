"""FedNCF's rounds, worked out step by step with plain arithmetic (the world is the one of golden.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ownview import FedNCF
from tests.methods.golden import ITEMS, AdamByHand, dot, error, federation

SIZE, HIDDEN, RATE, EPOCHS, FACTOR = 4, 2, 0.05, 2, 1.5
Values = dict[str, list[list[float]]]
"""Everything as matrices: user [1][4], items [4][4], weight0 [8][2], bias0 [1][2], weight1 [2][1], bias1 [1][1]."""


def _columns(matrix: list[list[float]]) -> list[list[float]]:
    return [list(column) for column in zip(*matrix, strict=True)]


def _gradients(client: int, p: Values) -> Values:
    """d(mean loss)/d(everything), by the chain rule through one ReLU layer."""
    grads = {name: [[0.0] * len(row) for row in matrix] for name, matrix in p.items()}
    for i in range(ITEMS):
        joined = p["user"][0] + p["items"][i]
        before = [dot(joined, column) + b for column, b in zip(_columns(p["weight0"]), p["bias0"][0], strict=True)]
        hidden = [max(x, 0.0) for x in before]
        slope = error(client, i, dot(hidden, [row[0] for row in p["weight1"]]) + p["bias1"][0][0])
        grads["bias1"][0][0] += slope
        for k in range(HIDDEN):
            grads["weight1"][k][0] += slope * hidden[k]
            inner = slope * p["weight1"][k][0] if before[k] > 0 else 0.0
            grads["bias0"][0][k] += inner
            for j in range(2 * SIZE):
                grads["weight0"][j][k] += inner * joined[j]
                target = grads["user"][0] if j < SIZE else grads["items"][i]
                target[j % SIZE] += inner * p["weight0"][j][k]
    return grads


def _train(client: int, p: Values, optimizer: str) -> None:
    """In place; one batch an epoch, everything moves at once. SGD has faster rates for the vectors."""
    rates = {"user": RATE * FACTOR, "items": RATE * FACTOR * ITEMS}
    places = [(name, r, c) for name, matrix in p.items() for r, row in enumerate(matrix) for c in range(len(row))]
    moments = {place: AdamByHand() for place in places}
    for _ in range(EPOCHS):
        grads = _gradients(client, p)
        for name, r, c in places:
            slope = grads[name][r][c]
            if optimizer == "sgd":
                p[name][r][c] -= rates.get(name, RATE) * slope
            else:
                p[name][r][c] = moments[name, r, c].move(p[name][r][c], slope, RATE)


def _matrix(value: torch.Tensor) -> list[list[float]]:
    return value.reshape(1, -1).tolist() if value.dim() < 2 else value.tolist()


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_fedncf(engine: str, optimizer: str) -> None:
    method = FedNCF(
        embedding_size=SIZE, hidden_layers=(HIDDEN,), negatives=2, local_epochs=EPOCHS, learning_rate=RATE,
        optimizer=optimizer, rate_factor=FACTOR,
    )  # fmt: skip
    one = federation(method, engine)
    shared = {name: _matrix(value) for name, value in one.server.shared.items()}
    users = [_matrix(user) for user in one.clients.own["user"]]
    for number in (1, 2):
        one.round(number)
        trained = []
        for client in range(2):
            mine = {"user": users[client], **{name: [list(row) for row in value] for name, value in shared.items()}}
            _train(client, mine, optimizer)
            users[client] = mine["user"]
            trained.append(mine)
        shared = {name: ((np.array(trained[0][name]) + np.array(trained[1][name])) / 2).tolist() for name in shared}
        for name, value in shared.items():
            assert _matrix(one.server.shared[name]) == pytest.approx(np.array(value), abs=1e-9), name
    assert one.clients.own["user"].tolist() == pytest.approx(np.array(users)[:, 0], abs=1e-9)


def test_the_network_halves_from_layer_to_layer() -> None:
    assert FedNCF().network.widths == (32, 16, 8, 4, 1)
    assert FedNCF(hidden_layers=(5,)).network.widths == (32, 5, 1)
