"""FedEM's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from ownview import FedEM, FedMF
from tests.engine.golden import ITEMS, UNEVEN_COUNTS, UNEVEN_SHARES, Matrix, Vector, uneven_federation
from tests.engine.merging_by_hand import (
    HIDDEN,
    RHO,
    SIZE,
    Tables,
    adapter_of,
    adapters_by_name,
    train_adapter,
    train_user_and_table,
)

EPOCHS = 3
RATE, ADAPTER_RATE, ALPHA = 0.2, 0.15, 0.7
CLIENTS = (0, 1)


@dataclass
class Client:
    """What one client holds."""

    user: Vector
    tables: Tables


def _round(number: int, client: Client, variant: str, merged_rows: str) -> None:
    """The adapter, where there is one; then the merged table; then the rest."""
    tables = client.tables
    if variant in ("em", "dm"):
        train_adapter(number, tables, client.user, 0.0, variant, EPOCHS, ADAPTER_RATE)
    merged = tables.merged(variant)
    for i in range(ITEMS):
        if merged_rows == "all" or UNEVEN_COUNTS[number][i]:
            tables.own[i] = merged[i]
    train_user_and_table(number, client.user, tables.own, EPOCHS, RATE)


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
    return [
        Client(seen["user"][u], Tables(seen["items"][u], seen["received"][u], adapter_of(seen, u, variant)))
        for u in CLIENTS
    ]


def _check(seen: dict[str, list], clients: list[Client], variant: str) -> None:
    expected = {
        "items": [one.tables.own for one in clients],
        "received": [one.tables.received for one in clients],
        "user": [one.user for one in clients],
        **adapters_by_name([one.tables.adapter for one in clients], variant),
    }
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
        return {name: value.tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}

    clients = _start(seen(), variant)
    begun = [(client.tables.adapter.b1, client.tables.own) for client in _start(seen(), variant)]
    for number in (1, 2, 3):
        one.round(number)
        for u in CLIENTS:
            _round(u, clients[u], variant, merged_rows)
        uploads = [[list(row) for row in client.tables.own] for client in clients]
        weights = _similar_weights(uploads) if aggregation == "similarity" else [UNEVEN_SHARES] * 2
        for u in CLIENTS:
            clients[u].tables.received = _mixed(uploads, weights[u])
        _check(seen(), clients, variant)
    if aggregation == "similarity":
        assert 0 < weights[0][1] < weights[1][1] < 1, "the mixtures must differ for this test to mean something"
    if variant in ("em", "dm"):
        assert all(client.tables.adapter.b1 != start for client, (start, _) in zip(clients, begun, strict=True))
    unseen = [clients[0].tables.own[3], clients[1].tables.own[0], clients[1].tables.own[2]]
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
    assert replaced.server.shared["items"].tolist() == pytest.approx(plain.server.shared["items"].numpy(), abs=1e-9)
    assert replaced.clients.own["user"].tolist() == pytest.approx(plain.clients.own["user"].numpy(), abs=1e-9)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_merging_again_moves_the_table_by_its_share_of_the_score(engine: str) -> None:
    shared: dict[str, Any] = {"variant": "sm", "embedding_size": SIZE, "negatives": 1, "local_epochs": EPOCHS}
    nothing, once = (uneven_federation(FedEM(rho=0.0, merges_again=again, **shared), engine) for again in (True, False))
    for number in (1, 2):
        nothing.round(number)
        once.round(number)
    everybody = torch.tensor(CLIENTS)
    assert torch.equal(nothing.clients.whole("items", everybody), once.clients.whole("items", everybody))
    all_of_it = uneven_federation(FedEM(rho=1.0, merges_again=True, **shared), engine)
    all_of_it.round(1)
    p = {name: value[0] for name, value in all_of_it.predicting(torch.tensor([0]), None)[0].items()}
    assert torch.allclose(all_of_it.client.scores(p), p["received"] @ p["user"]), "rho = 1 scores what was received"
