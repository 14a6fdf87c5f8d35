"""PLGC's rounds around FedMF, worked out with plain arithmetic, in the uneven world of golden.py.

The gradient of eRR through projector and predictor is taken by central differences of the loss as the paper writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from ownview import PLGC, FedMF
from ownview.round.scorers import scorer_of
from tests.methods.golden import (
    ITEMS,
    UNEVEN_COUNTS,
    UNEVEN_SHARES,
    Matrix,
    Vector,
    dot,
    sigmoid,
    uneven_errors,
    uneven_federation,
)

SIZE, EPOCHS = 2, 2
RATE, TABLE_RATE, NETWORK_RATE, BETA, GAMMA = 0.3, 0.9, 0.4, 0.6, 0.5
CLIENTS = (0, 1)
LAYERS = ("projector0", "projector1", "predictor0", "predictor1")
Network = dict[str, list[Any]]


@dataclass
class Client:
    """What one client holds."""

    user: Vector
    own: Matrix
    received: Matrix
    network: Network


def _share(client: Client) -> float:
    """tr(C C^T) / (tr(C C^T) + tr(G G^T)), over all rows."""
    local = sum(dot(row, row) for row in client.own)
    return local / (local + sum(dot(row, row) for row in client.received))


def _mixed(client: Client, share: float) -> Matrix:
    return [
        [share * c + (1 - share) * g for c, g in zip(*rows, strict=True)]
        for rows in zip(client.own, client.received, strict=True)
    ]


def _linear(network: Network, layer: str, x: Vector) -> Vector:
    weights, bias = network[layer], network[f"{layer}_bias"]
    return [sum(x[a] * weights[a][k] for a in range(SIZE)) + bias[k] for k in range(SIZE)]


def _view(network: Network, x: Vector) -> Vector:
    """Projector, then predictor: each a linear layer, ReLU, a linear layer."""
    for part in ("projector", "predictor"):
        hidden = [max(one, 0.0) for one in _linear(network, f"{part}0", x)]
        x = _linear(network, f"{part}1", hidden)
    return x


def _err(number: int, client: Client) -> float:
    """The penalty over the batch's samples: cosines of every dimension of one view with every one of the other."""
    samples = [i for i in range(ITEMS) for _ in range(UNEVEN_COUNTS[number][i])]
    ours = [_view(client.network, client.own[i]) for i in samples]
    theirs = [_view(client.network, client.received[i]) for i in samples]
    total = 0.0
    for i in range(SIZE):
        for j in range(SIZE):
            left, right = [row[i] for row in ours], [row[j] for row in theirs]
            cosine = dot(left, right) / math.sqrt(dot(left, left) * dot(right, right) + 1e-12)
            total += (1 - cosine) ** 2 if i == j else GAMMA * cosine**2
    return total / SIZE


def _slopes(function: Callable[[], float], values: list[Any]) -> list[Any]:
    """Central differences of `function` by every number in nested lists, which are put back as they were."""
    slopes: list[Any] = []
    step = 1e-5
    for k, value in enumerate(values):
        if isinstance(value, list):
            slopes.append(_slopes(function, value))
            continue
        values[k] = value + step
        above = function()
        values[k] = value - step
        slopes.append((above - function()) / (2 * step))
        values[k] = value
    return slopes


def _moved(values: list[Any], slopes: list[Any], rate: float) -> list[Any]:
    return [
        _moved(value, slope, rate) if isinstance(value, list) else value - rate * slope
        for value, slope in zip(values, slopes, strict=True)
    ]


def _round(number: int, client: Client, *, mixing: bool, penalty: bool) -> None:
    """User, table and network move by the same forward pass; a is a number to the gradient."""
    if not mixing:
        client.own = [list(row) for row in client.received]
    for _ in range(EPOCHS):
        share = _share(client) if mixing else 1.0
        table = _mixed(client, share)
        errors = uneven_errors(number, [dot(client.user, row) for row in table])
        for_user = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for_table = [[share * errors[i] * client.user[j] for j in range(SIZE)] for i in range(ITEMS)]
        moved: Network = {}
        if penalty:
            extra = _slopes(lambda: _err(number, client), client.own)
            for_table = [[for_table[i][j] + BETA * extra[i][j] for j in range(SIZE)] for i in range(ITEMS)]
            for name, values in client.network.items():
                moved[name] = _moved(values, _slopes(lambda: _err(number, client), values), NETWORK_RATE * BETA)
        client.user, client.own = _moved(client.user, for_user, RATE), _moved(client.own, for_table, TABLE_RATE)
        client.network = moved


def _scores(client: Client, *, mixing: bool) -> Vector:
    return [dot(client.user, row) for row in _mixed(client, _share(client) if mixing else 1.0)]


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("penalty", [True, False])
@pytest.mark.parametrize("mixing", [True, False])
def test_plgc_around_fedmf(mixing: bool, penalty: bool, engine: str) -> None:
    inner = FedMF(
        embedding_size=SIZE, optimizer="sgd", learning_rate=RATE, table_rate=TABLE_RATE, negatives=1,
        local_epochs=EPOCHS,
    )  # fmt: skip
    method = PLGC(
        inner=inner, mixing=mixing, redundancy="err" if penalty else "none", beta=BETA, gamma=GAMMA,
        network_rate=NETWORK_RATE,
    )  # fmt: skip
    one = uneven_federation(method, engine)
    both = torch.tensor(CLIENTS)

    def seen() -> dict[str, list[Any]]:
        values = one.predicting(both, None)[0]
        values["items"] = values["items"].expand(2, ITEMS, SIZE)  # one table for all where both halves are off
        return {name: value.tolist() for name, value in values.items()}

    start, names = seen(), [name for layer in LAYERS for name in (layer, f"{layer}_bias")] if penalty else []
    clients = [
        Client(start["user"][u], start["items"][u], [list(row) for row in start["items"][u]],
               {name: start[name][u] for name in names})
        for u in CLIENTS
    ]  # fmt: skip
    for number in (1, 2, 3):
        one.round(number)
        for u in CLIENTS:
            _round(u, clients[u], mixing=mixing, penalty=penalty)
        mean = [
            [sum(UNEVEN_SHARES[u] * clients[u].own[i][j] for u in CLIENTS) for j in range(SIZE)] for i in range(ITEMS)
        ]
        for client in clients:
            client.received = [list(row) for row in mean]
        tolerance = 1e-7 if penalty else 1e-9  # central differences against exact gradients
        found = seen()
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(mean), abs=tolerance)
        assert found["user"] == pytest.approx(np.array([client.user for client in clients]), abs=tolerance)
        for name in names:
            assert found[name] == pytest.approx(np.array([c.network[name] for c in clients]), abs=tolerance), name
        if mixing or penalty:
            assert found["items"] == pytest.approx(np.array([client.own for client in clients]), abs=tolerance)
            assert found["received"] == pytest.approx(np.array([mean, mean]), abs=tolerance)
            expected = [_scores(client, mixing=mixing) for client in clients]
        else:
            expected = [[dot(client.user, row) for row in mean] for client in clients]
        scorer = scorer_of(one)
        assert scorer.scores(both, None).tolist() == pytest.approx(np.array(expected), abs=tolerance)
        # Of two items a client is asked about, it must still take the traces over all four.
        asked = torch.tensor([[3, 1], [0, 2]])
        few = np.array([[expected[u][i] for i in asked[u].tolist()] for u in CLIENTS])
        assert scorer.scores(both, asked).tolist() == pytest.approx(few, abs=tolerance)
    if mixing:
        assert all(abs(_share(client) - 0.5) > 1e-3 for client in clients), "the share must matter for this test"


def test_both_halves_off_is_fedmf() -> None:
    inner = FedMF(embedding_size=SIZE, optimizer="sgd", learning_rate=RATE, negatives=1, local_epochs=EPOCHS)
    off = uneven_federation(PLGC.neutral(inner), "vector")
    plain = uneven_federation(inner, "vector")
    for number in (1, 2, 3):
        off.round(number)
        plain.round(number)
    assert torch.equal(off.server.shared["items"], plain.server.shared["items"])
    assert torch.equal(off.clients.own["user"], plain.clients.own["user"])


def _in_single_samples(client: Client, order: tuple[int, ...], *, once: bool) -> tuple[Vector, Matrix]:
    """Client 1's epochs of two batches, one sample each, in the given order of items; 1 is its positive, 3 is none."""
    user, own = list(client.user), [list(row) for row in client.own]
    share = 0.0
    for k, item in enumerate(order):
        if not once or k % 2 == 0:
            share = _share(Client(user, own, client.received, {}))
        row = [share * c + (1 - share) * g for c, g in zip(own[item], client.received[item], strict=True)]
        slope = sigmoid(dot(user, row)) - (1.0 if item == 1 else 0.0)
        moved = [c - TABLE_RATE * slope * share * u for c, u in zip(own[item], user, strict=True)]
        user, own[item] = [u - RATE * slope * q for u, q in zip(user, row, strict=True)], moved
    return user, own


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_the_share_is_worked_out_once_an_epoch_where_asked(engine: str) -> None:
    """Which of two samples comes first is drawn; each of the four ways two epochs can go is worked out."""
    inner = FedMF(
        embedding_size=SIZE, optimizer="sgd", learning_rate=RATE, table_rate=TABLE_RATE, negatives=1, local_epochs=2,
        batch_size=1,
    )  # fmt: skip
    one = uneven_federation(PLGC(inner=inner, redundancy="none", share_every="epoch"), engine)
    start = {name: value[1].tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}
    begun = Client(start["user"], start["items"], [list(row) for row in start["items"]], {})
    one.round(1)
    found = one.predicting(torch.tensor(CLIENTS), None)[0]
    reached = np.array([*found["items"][1].tolist(), found["user"][1].tolist()])
    for once in (True, False):
        orders = [(*first, *second) for first in ((1, 3), (3, 1)) for second in ((1, 3), (3, 1))]
        by_hand = [_in_single_samples(begun, order, once=once) for order in orders]
        apart = min(float(np.abs(reached - np.array([*own, user])).max()) for user, own in by_hand)
        assert (apart < 1e-12) == once, "and not for every batch"
