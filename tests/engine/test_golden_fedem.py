"""FedEM's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from ownview import FedEM, FedMF
from tests.engine.golden import (
    ITEMS,
    UNEVEN_COUNTS,
    UNEVEN_SHARES,
    AdamByHand,
    Matrix,
    Vector,
    dot,
    sigmoid,
    uneven_errors,
    uneven_federation,
)

SIZE, HIDDEN, EPOCHS = 2, 2, 3
RATE, ADAPTER_RATE, ALPHA, RHO = 0.2, 0.15, 0.7, 0.3
CLIENTS = (0, 1)


@dataclass
class Adapter:
    """rho_i = sigmoid(w1 . relu(x_i W0 + b0) + b1) with x_i = [q_g - q_l, q_l]; for `dm` only b1 is used."""

    w0: Matrix = field(default_factory=list)
    b0: Vector = field(default_factory=list)
    w1: Vector = field(default_factory=list)
    b1: float = 0.0

    def hidden(self, x: Vector) -> Vector:
        sums = [sum(x[a] * self.w0[a][k] for a in range(2 * SIZE)) + self.b0[k] for k in range(HIDDEN)]
        return [max(one, 0.0) for one in sums]


@dataclass
class Client:
    """What one client holds."""

    user: Vector
    own: Matrix
    received: Matrix
    adapter: Adapter


def _apart(client: Client, i: int) -> Vector:
    return [client.received[i][j] - client.own[i][j] for j in range(SIZE)]


def _rho(client: Client, i: int, variant: str) -> float:
    if variant == "em":
        hidden = client.adapter.hidden([*_apart(client, i), *client.own[i]])
        return sigmoid(dot(hidden, client.adapter.w1) + client.adapter.b1)
    return {"dm": sigmoid(client.adapter.b1), "sm": RHO, "sr": 1.0}[variant]


def _merged(client: Client, variant: str) -> Matrix:
    rhos = [_rho(client, i, variant) for i in range(ITEMS)]
    return [[client.own[i][j] + rhos[i] * _apart(client, i)[j] for j in range(SIZE)] for i in range(ITEMS)]


def _train_adapter(number: int, client: Client, variant: str) -> None:
    """Backpropagation through the score, the logistic function, and for `em` the hidden layer."""
    adapter = client.adapter
    moments = {key: AdamByHand() for key in [*((a, k) for a in range(2 * SIZE) for k in range(HIDDEN)), "b1"]}
    moments |= {(name, k): AdamByHand() for name in ("b0", "w1") for k in range(HIDDEN)}
    for _ in range(EPOCHS):
        errors = uneven_errors(number, [dot(client.user, row) for row in _merged(client, variant)])
        rhos = [_rho(client, i, variant) for i in range(ITEMS)]
        # d loss / d (what the logistic function is taken of), item by item
        before = [errors[i] * dot(client.user, _apart(client, i)) * rhos[i] * (1 - rhos[i]) for i in range(ITEMS)]
        if variant == "em":
            inputs = [[*_apart(client, i), *client.own[i]] for i in range(ITEMS)]
            hidden = [adapter.hidden(x) for x in inputs]
            back = [[before[i] * adapter.w1[k] * (hidden[i][k] > 0) for k in range(HIDDEN)] for i in range(ITEMS)]
            for k in range(HIDDEN):
                slope = sum(before[i] * hidden[i][k] for i in range(ITEMS))
                adapter.w1[k] = moments["w1", k].move(adapter.w1[k], slope, ADAPTER_RATE)
                slope = sum(back[i][k] for i in range(ITEMS))
                adapter.b0[k] = moments["b0", k].move(adapter.b0[k], slope, ADAPTER_RATE)
                for a in range(2 * SIZE):
                    slope = sum(inputs[i][a] * back[i][k] for i in range(ITEMS))
                    adapter.w0[a][k] = moments[a, k].move(adapter.w0[a][k], slope, ADAPTER_RATE)
        adapter.b1 = moments["b1"].move(adapter.b1, sum(before), ADAPTER_RATE)


def _train_table(number: int, client: Client) -> None:
    """User vector and table together."""
    moments = {(i, j): AdamByHand() for i in range(-1, ITEMS) for j in range(SIZE)}
    for _ in range(EPOCHS):
        errors = uneven_errors(number, [dot(client.user, row) for row in client.own])
        for_user = [sum(errors[i] * client.own[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for i in range(ITEMS):
            row, slopes = client.own[i], [errors[i] * client.user[j] for j in range(SIZE)]
            client.own[i] = [moments[i, j].move(row[j], slopes[j], RATE) for j in range(SIZE)]
        client.user = [moments[-1, j].move(client.user[j], for_user[j], RATE) for j in range(SIZE)]


def _round(number: int, client: Client, variant: str, merged_rows: str) -> None:
    """The adapter, where there is one; then the merged table; then the rest."""
    if variant in ("em", "dm"):
        _train_adapter(number, client, variant)
    merged = _merged(client, variant)
    for i in range(ITEMS):
        if merged_rows == "all" or UNEVEN_COUNTS[number][i]:
            client.own[i] = merged[i]
    _train_table(number, client)


def _pair_weights(target: tuple[float, float]) -> tuple[float, float]:
    """The nearest point of the segment from (1, 0) to (0, 1)."""
    first = min(max((target[0] - target[1] + 1) / 2, 0.0), 1.0)
    return first, 1 - first


def _similar_weights(tables: list[Matrix]) -> list[tuple[float, float]]:
    """For each client, how much of both uploads it receives."""
    squares = [(tables[0][i][j] - tables[1][i][j]) ** 2 for i in range(ITEMS) for j in range(SIZE)]
    similar = ((1.0, 1 / (1 + sum(squares))), (1 / (1 + sum(squares)), 1.0))
    return [
        _pair_weights(
            (
                (UNEVEN_SHARES[0] + ALPHA * similar[u][0]) / (1 + ALPHA),
                (UNEVEN_SHARES[1] + ALPHA * similar[u][1]) / (1 + ALPHA),
            )
        )
        for u in CLIENTS
    ]


def _mixed(tables: list[Matrix], weights: tuple[float, float]) -> Matrix:
    return [[weights[0] * tables[0][i][j] + weights[1] * tables[1][i][j] for j in range(SIZE)] for i in range(ITEMS)]


def _start(seen: dict[str, list], variant: str) -> list[Client]:
    """From what the clients hold before the first round."""
    clients = []
    for u in CLIENTS:
        adapter = Adapter()
        if variant == "em":
            adapter.w0, adapter.b0 = seen["adapter0"][u], seen["adapter_bias0"][u]
            adapter.w1, adapter.b1 = [row[0] for row in seen["adapter1"][u]], seen["adapter_bias1"][u][0]
        clients.append(Client(seen["user"][u], seen["items"][u], seen["received"][u], adapter))
    return clients


def _check(seen: dict[str, list], clients: list[Client], variant: str) -> None:
    expected = {
        "items": [one.own for one in clients],
        "received": [one.received for one in clients],
        "user": [one.user for one in clients],
    }
    if variant == "em":
        expected |= {
            "adapter0": [one.adapter.w0 for one in clients],
            "adapter_bias0": [one.adapter.b0 for one in clients],
            "adapter1": [[[weight] for weight in one.adapter.w1] for one in clients],
            "adapter_bias1": [[one.adapter.b1] for one in clients],
        }
    if variant == "dm":
        expected["adapter"] = [one.adapter.b1 for one in clients]
    assert set(seen) == set(expected)
    for name, values in expected.items():
        assert seen[name] == pytest.approx(np.array(values), abs=1e-9), name


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("merged_rows", ["all", "trained"])
@pytest.mark.parametrize("aggregation", ["mean", "similarity"])
@pytest.mark.parametrize("variant", ["em", "dm", "sm", "sr"])
def test_fedem(variant: str, aggregation: str, merged_rows: str, engine: str) -> None:
    method = FedEM(
        variant=variant, aggregation=aggregation, merged_rows=merged_rows, alpha=ALPHA, rho=RHO, embedding_size=SIZE,
        adapter_layers=(HIDDEN,), learning_rate=RATE, adapter_rate=ADAPTER_RATE, negatives=1, local_epochs=EPOCHS,
    )  # fmt: skip
    one = uneven_federation(method, engine)

    def seen() -> dict[str, list]:
        return {name: value.tolist() for name, value in one.state.predicting(torch.tensor(CLIENTS), None)[0].items()}

    clients = _start(seen(), variant)
    begun = [(client.adapter.b1, client.own) for client in _start(seen(), variant)]
    for number in (1, 2, 3):
        one.round(number)
        for u in CLIENTS:
            _round(u, clients[u], variant, merged_rows)
        uploads = [[list(row) for row in client.own] for client in clients]
        weights = _similar_weights(uploads) if aggregation == "similarity" else [UNEVEN_SHARES] * 2
        for u in CLIENTS:
            clients[u].received = _mixed(uploads, weights[u])
        _check(seen(), clients, variant)
    if aggregation == "similarity":
        assert 0 < weights[0][1] < weights[1][1] < 1, "the mixtures must differ for this test to mean something"
    if variant in ("em", "dm"):
        assert all(client.adapter.b1 != start for client, (start, _) in zip(clients, begun, strict=True))
    unseen = [clients[0].own[3], clients[1].own[0], clients[1].own[2]]
    moved = [row != start for row, start in zip(unseen, [begun[0][1][3], begun[1][1][0], begun[1][1][2]], strict=True)]
    assert moved == [merged_rows == "all"] * 3


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_replacement_by_mean_is_fedmf_with_the_clients_own_tables(engine: str) -> None:
    """The docstring's claim: the server's table is FedMF's."""
    shared = {"embedding_size": SIZE, "learning_rate": RATE, "negatives": 1, "local_epochs": EPOCHS}
    replaced = uneven_federation(FedEM(variant="sr", aggregation="mean", **shared), engine)
    plain = uneven_federation(FedMF(**shared), engine)
    for number in (1, 2, 3):
        replaced.round(number)
        plain.round(number)
    assert replaced.state.shared["items"].tolist() == pytest.approx(plain.state.shared["items"].numpy(), abs=1e-9)
    assert replaced.state.own["user"].tolist() == pytest.approx(plain.state.own["user"].numpy(), abs=1e-9)
