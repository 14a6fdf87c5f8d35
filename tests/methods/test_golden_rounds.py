"""One or two rounds of two clients and four items, worked out step by step with plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview import DualPersonalisation, FedMF, LocalOnly, PFedRec
from ownview.base.errors import SettingError
from ownview.baselines.popularity import Popularity
from ownview.round.federation import Federation
from tests.methods.golden import ITEMS, POSITIVES, AdamByHand, dot, error, federation, golden_split, sigmoid
from tests.questions import about


def _fedmf_client(
    client: int, user: list[float], table: list[list[float]], epochs: int, rate: float, weight: float = 0.0
) -> None:
    """FedMF's local training: user vector and item rows move together by Adam, in place.

    Of the six samples one is about each positive and two about each negative; weight (|u|^2 + their mean |q|^2) is
    added to the loss.
    """
    shares = [(1 if i in POSITIVES[client] else 2) / 6 for i in range(ITEMS)]
    moments = {(k, j): AdamByHand() for k in range(-1, ITEMS) for j in range(2)}
    for _ in range(epochs):
        errors = [error(client, i, dot(user, table[i])) for i in range(ITEMS)]
        pull = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(2)]
        user_gradient = [pull[j] + 2 * weight * user[j] for j in range(2)]
        row_gradient = [
            [errors[i] * user[j] + 2 * weight * shares[i] * table[i][j] for j in range(2)] for i in range(ITEMS)
        ]
        for j in range(2):
            user[j] = moments[-1, j].move(user[j], user_gradient[j], rate)
            for i in range(ITEMS):
                table[i][j] = moments[i, j].move(table[i][j], row_gradient[i][j], rate)


def _start(one: Federation, name: str) -> list[list[float]]:
    return one.server.shared[name].tolist()


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_fedmf(engine: str, weighting: str, weight: float) -> None:
    method = FedMF(embedding_size=2, negatives=2, local_epochs=3, learning_rate=0.05, regularization=weight)
    one = federation(method, engine, weighting=weighting)
    table, users = _start(one, "items"), one.clients.own["user"].tolist()
    for number in (1, 2):
        one.round(number)
        trained = [[list(row) for row in table] for _ in range(2)]
        for client in range(2):
            _fedmf_client(client, users[client], trained[client], epochs=3, rate=0.05, weight=weight)
        # Both clients have two positives, so both weightings are the plain mean.
        table = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(2)] for i in range(ITEMS)]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
        assert one.clients.own["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fedmf_by_sgd_with_a_rate_for_the_table(engine: str) -> None:
    method = FedMF(
        embedding_size=2, negatives=2, local_epochs=1, optimizer="sgd", learning_rate=0.1, table_rate_factor=5.0
    )
    one = federation(method, engine)
    table, users = _start(one, "items"), one.clients.own["user"].tolist()
    one.round(1)
    trained = []
    for client in range(2):
        user, errors = users[client], [error(client, i, dot(users[client], table[i])) for i in range(ITEMS)]
        trained.append(
            [[table[i][j] - 0.1 * ITEMS * 5.0 * errors[i] * user[j] for j in range(2)] for i in range(ITEMS)]
        )
        users[client] = [user[j] - 0.1 * sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(2)]
    mean = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(2)] for i in range(ITEMS)]
    assert one.server.shared["items"].tolist() == pytest.approx(np.array(mean), abs=1e-9)
    assert one.clients.own["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)


def test_two_rates_for_one_table_are_refused() -> None:
    with pytest.raises(SettingError, match="table_rate = 3 and table_rate_factor = 5 both set the item table's rate"):
        FedMF(table_rate=3.0, table_rate_factor=5.0)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_local_only(engine: str) -> None:
    one = federation(LocalOnly(embedding_size=2, negatives=2, local_epochs=2, learning_rate=0.05), engine)
    start = one.predicting(torch.tensor([0]), None)[0]
    tables = [start["items"][0].tolist() for _ in range(2)]
    users = one.clients.own["user"].tolist()
    assert one.round(1).bytes_up == 0
    one.round(2)
    for client in range(2):
        for _ in range(2):
            _fedmf_client(client, users[client], tables[client], epochs=2, rate=0.05)
    own = one.predicting(torch.tensor([0, 1]), None)[0]["items"]
    assert own.tolist() == pytest.approx(np.array(tables), abs=1e-9)


def _pfedrec_client(
    client: int, w: list[float], b: float, table: list[list[float]], rates: tuple[float, float]
) -> float:
    """PFedRec's batch: a step of the score function, then, on fresh scores, a step of the table, both SGD."""
    errors = [error(client, i, dot(w, table[i]) + b) for i in range(ITEMS)]
    gradient = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(2)]
    w[:] = [w[j] - rates[0] * gradient[j] for j in range(2)]
    b -= rates[0] * sum(errors)
    errors = [error(client, i, dot(w, table[i]) + b) for i in range(ITEMS)]
    for i in range(ITEMS):
        table[i] = [table[i][j] - rates[1] * errors[i] * w[j] for j in range(2)]
    return b


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_pfedrec(engine: str) -> None:
    method = PFedRec(embedding_size=2, negatives=2, learning_rate=0.1, table_rate_factor=5.0)
    one = federation(method, engine)
    rates = (0.1, 0.1 * ITEMS * 5.0)
    table = _start(one, "items")
    w = [row[0] for row in one.clients.own["weight0"].tolist()]
    b = [row[0] for row in one.clients.own["bias0"].tolist()]
    for number in (1, 2):
        one.round(number)
        trained = [[list(row) for row in table] for _ in range(2)]
        for client in range(2):
            b[client] = _pfedrec_client(client, w[client], b[client], trained[client], rates)
        table = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(2)] for i in range(ITEMS)]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
    predicting = one.predicting(torch.tensor([0, 1]), None)[0]
    assert predicting["items"].tolist() == pytest.approx(np.array(trained), abs=1e-9)  # its own, not the mean
    assert predicting["weight0"][:, 0].tolist() == pytest.approx(np.array(w), abs=1e-9)
    assert predicting["bias0"][:, 0].tolist() == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_dual_personalisation_around_fedmf(engine: str) -> None:
    """User vector first, then, on fresh scores, the table; each half has an Adam of its own."""
    inner = FedMF(embedding_size=2, negatives=2, local_epochs=2, learning_rate=0.05)
    one = federation(DualPersonalisation(inner=inner), engine)
    start, users = _start(one, "items"), one.clients.own["user"].tolist()
    one.round(1)
    tables = [[list(row) for row in start] for _ in range(2)]
    for client, (user, table) in enumerate(zip(users, tables, strict=True)):
        moments = {(k, j): AdamByHand() for k in range(-1, ITEMS) for j in range(2)}
        for _ in range(2):
            errors = [error(client, i, dot(user, table[i])) for i in range(ITEMS)]
            gradient = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(2)]
            user[:] = [moments[-1, j].move(user[j], gradient[j], 0.05) for j in range(2)]
            errors = [error(client, i, dot(user, table[i])) for i in range(ITEMS)]
            for i in range(ITEMS):
                table[i] = [moments[i, j].move(table[i][j], errors[i] * user[j], 0.05) for j in range(2)]
    predicting = one.predicting(torch.tensor([0, 1]), None)[0]
    assert predicting["items"].tolist() == pytest.approx(np.array(tables), abs=1e-9)
    assert predicting["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)


def test_popularity_counts_training_rows() -> None:
    learned = Popularity().fit(golden_split(), golden_split().training_items(), seed=0)
    assert Popularity().scores(learned, about(golden_split())).tolist() == [[1, 2, 1, 0], [1, 2, 1, 0]]


def test_the_reported_loss_is_the_mean_over_clients_and_epochs() -> None:
    one = federation(FedMF(embedding_size=2, negatives=2, local_epochs=1), "vector")
    table, users = _start(one, "items"), one.clients.own["user"].tolist()
    total = 0.0
    for client in range(2):
        for item in range(ITEMS):
            score = dot(users[client], table[item])
            label, samples = (1, 1) if item in POSITIVES[client] else (0, 2)
            total -= samples * math.log(sigmoid(score) if label else 1 - sigmoid(score)) / 6 / 2
    assert one.round(1).loss == pytest.approx(total, abs=1e-9)
