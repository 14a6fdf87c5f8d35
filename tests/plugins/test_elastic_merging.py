"""The plug-in elastic-merging, worked out with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ownview import ElasticMerging, FedMF, PFedRec
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from tests.methods.golden import (
    ITEMS,
    UNEVEN_COUNTS,
    UNEVEN_SHARES,
    Matrix,
    Vector,
    dot,
    uneven_errors,
    uneven_federation,
)
from tests.methods.merging_by_hand import (
    HIDDEN,
    SIZE,
    Tables,
    adapter_of,
    adapters_by_name,
    train_adapter,
    train_user_and_table,
)

CLIENTS = (0, 1)
ADAPTER_RATE = 0.15


def _seen(one: Federation) -> dict[str, list[Any]]:
    return {name: value.tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}


def _mean(tables: list[Tables], shares: tuple[float, float]) -> Matrix:
    return [[sum(shares[u] * tables[u].own[i][j] for u in CLIENTS) for j in range(SIZE)] for i in range(ITEMS)]


def _merge(client: int, tables: Tables, variant: str, merged_rows: str) -> None:
    merged = tables.merged(variant)
    for i in range(ITEMS):
        if merged_rows == "all" or UNEVEN_COUNTS[client][i]:
            tables.own[i] = merged[i]


def _agree(one: Federation, expected: dict[str, list[Any]]) -> None:
    seen = _seen(one)
    assert set(seen) == set(expected)
    for name, values in expected.items():
        assert seen[name] == pytest.approx(np.array(values), abs=1e-9), name


def _scores(one: Federation) -> list[Vector]:
    return scorer_of(one).scores(torch.tensor(CLIENTS), None).tolist()


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("merged_rows", ["all", "trained"])
@pytest.mark.parametrize("server_rate", [1.0, 0.5])
def test_around_fedmf(server_rate: float, merged_rows: str, engine: str) -> None:
    """A weight for every item; two epochs of the adapter, three of FedMF; a mean by samples.

    At a server rate below 1 the mean change counts from what the server had, not from the clients' own tables.
    """
    inner = FedMF(embedding_size=SIZE, learning_rate=0.2, negatives=1, local_epochs=3)
    method = ElasticMerging(
        inner=inner, variant="em", adapter_layers=(HIDDEN,), adapter_rate=ADAPTER_RATE, adapter_epochs=2,
        merged_rows=merged_rows,
    )  # fmt: skip
    one = uneven_federation(method, engine, server_learning_rate=server_rate)
    start, users = _seen(one), _seen(one)["user"]
    tables = [Tables(start["items"][u], start["received"][u], adapter_of(start, u, "em")) for u in CLIENTS]
    for number in (1, 2, 3):
        one.round(number)
        for u in CLIENTS:
            train_adapter(u, tables[u], users[u], 0.0, "em", 2, ADAPTER_RATE)
            _merge(u, tables[u], "em", merged_rows)
            train_user_and_table(u, users[u], tables[u].own, epochs=3, rate=0.2)
        mean, before = _mean(tables, UNEVEN_SHARES), tables[0].received
        sent = [[before[i][j] + server_rate * (mean[i][j] - before[i][j]) for j in range(SIZE)] for i in range(ITEMS)]
        for each in tables:
            each.received = [list(row) for row in sent]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(sent), abs=1e-9)
        _agree(one, {
            "user": users, "items": [each.own for each in tables], "received": [each.received for each in tables],
            **adapters_by_name([each.adapter for each in tables], "em"),
        })  # fmt: skip
    by_hand = [[dot(users[u], row) for row in tables[u].own] for u in CLIENTS]  # its own table, not the mean
    assert _scores(one) == pytest.approx(np.array(by_hand), abs=1e-9)


def _pfedrec_batch(client: int, w: Vector, b: float, table: Matrix, rates: tuple[float, float]) -> float:
    """A step of the score function, then, on fresh scores, a step of the table, both SGD; returns the new b."""
    errors = uneven_errors(client, [dot(w, row) + b for row in table])
    w[:] = [w[j] - rates[0] * sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
    b -= rates[0] * sum(errors)
    errors = uneven_errors(client, [dot(w, row) + b for row in table])
    for i in range(ITEMS):
        table[i] = [table[i][j] - rates[1] * errors[i] * w[j] for j in range(SIZE)]
    return b


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("merged_rows", ["all", "trained"])
def test_around_pfedrec(merged_rows: str, engine: str) -> None:
    """One learnt weight; as many epochs of it as PFedRec's own; a plain mean, though the clients differ in size."""
    inner = PFedRec(embedding_size=SIZE, negatives=1, local_epochs=2, learning_rate=0.1, table_rate_factor=2.0)
    method = ElasticMerging(inner=inner, variant="dm", adapter_rate=ADAPTER_RATE, merged_rows=merged_rows)
    one = uneven_federation(method, engine)
    start = _seen(one)
    w, b = [one[0] for one in start["weight0"]], [one[0] for one in start["bias0"]]
    tables = [Tables(start["items"][u], start["received"][u], adapter_of(start, u, "dm")) for u in CLIENTS]
    for number in (1, 2, 3):
        one.round(number)
        for u in CLIENTS:
            train_adapter(u, tables[u], w[u], b[u], "dm", 2, ADAPTER_RATE)
            _merge(u, tables[u], "dm", merged_rows)
            for _ in range(2):
                b[u] = _pfedrec_batch(u, w[u], b[u], tables[u].own, (0.1, 0.1 * ITEMS * 2.0))
        mean = _mean(tables, (0.5, 0.5))
        for each in tables:
            each.received = [list(row) for row in mean]
        _agree(one, {
            "weight0": [[one] for one in w], "bias0": [[one] for one in b],
            "items": [each.own for each in tables], "received": [mean, mean],
            **adapters_by_name([each.adapter for each in tables], "dm"),
        })  # fmt: skip
    assert all(each.adapter.b1 != 0 for each in tables), "the weight must be learnt for this test to mean something"
    by_hand = [[dot(w[u], row) + b[u] for row in tables[u].own] for u in CLIENTS]
    assert _scores(one) == pytest.approx(np.array(by_hand), abs=1e-9)
