"""FedEM's rounds, worked out step by step with plain arithmetic, in the uneven world of golden.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from ownview import FedEM, FedMF
from ownview.base.errors import SettingError
from ownview.federation.tables.mixtures import Mixtures
from ownview.seam.mixing import Similarity
from tests.methods.golden import (
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
from tests.methods.merging_by_hand import (
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


def _start(seen: dict[str, list[Any]], variant: str) -> list[Client]:
    """From what the clients hold before the first round."""
    return [
        Client(seen["user"][u], Tables(seen["items"][u], seen["received"][u], adapter_of(seen, u, variant)))
        for u in CLIENTS
    ]


def _check(seen: dict[str, list[Any]], clients: list[Client], variant: str) -> None:
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

    def seen() -> dict[str, list[Any]]:
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
    shared: dict[str, Any] = {"embedding_size": SIZE, "learning_rate": RATE, "negatives": 1, "local_epochs": EPOCHS}
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
    clients = torch.tensor(CLIENTS)
    assert torch.equal(nothing.clients.whole("items", clients), once.clients.whole("items", clients))
    all_of_it = uneven_federation(FedEM(rho=1.0, merges_again=True, **shared), engine)
    all_of_it.round(1)
    p = {name: value[0] for name, value in all_of_it.predicting(torch.tensor([0]), None)[0].items()}
    assert torch.allclose(all_of_it.client.scores(p), p["received"] @ p["user"]), "rho = 1 scores what was received"


def _merging_and_training_in_turn(number: int, client: Client) -> None:
    """Algorithm 1: an epoch of the adapter, a merge, an epoch of user and table; Adam anew each time."""
    for _ in range(EPOCHS):
        train_adapter(number, client.tables, client.user, 0.0, "em", 1, ADAPTER_RATE)
        client.tables.own = client.tables.merged("em")
        train_user_and_table(number, client.user, client.tables.own, 1, RATE)


def _in_every_batch(number: int, client: Client) -> None:
    """One merge with rho as it was; then on every batch a step of t, rho = sigmoid(t), and one of user and table."""
    tables, user = client.tables, client.user
    tables.own = tables.merged("dm")
    of_t, moments = AdamByHand(), {(i, j): AdamByHand() for i in range(-1, ITEMS) for j in range(SIZE)}
    for _ in range(EPOCHS):
        errors = uneven_errors(number, [dot(user, row) for row in tables.merged("dm")])
        rho = sigmoid(tables.adapter.b1)
        slope = sum(errors[i] * dot(user, tables.apart(i)) for i in range(ITEMS)) * rho * (1 - rho)
        tables.adapter.b1 = of_t.move(tables.adapter.b1, slope, ADAPTER_RATE)
        merged, rho = tables.merged("dm"), sigmoid(tables.adapter.b1)
        errors = uneven_errors(number, [dot(user, row) for row in merged])
        for_user = [sum(errors[i] * merged[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for i in range(ITEMS):
            slopes = [errors[i] * (1 - rho) * user[j] for j in range(SIZE)]
            tables.own[i] = [moments[i, j].move(tables.own[i][j], slopes[j], RATE) for j in range(SIZE)]
        user[:] = [moments[-1, j].move(user[j], for_user[j], RATE) for j in range(SIZE)]


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize(("nesting", "variant"), [("epoch", "em"), ("batch", "dm")])
def test_adapter_and_table_take_turns(nesting: str, variant: str, engine: str) -> None:
    method = FedEM(
        variant=variant, aggregation="mean", embedding_size=SIZE, adapter_layers=(HIDDEN,), learning_rate=RATE,
        adapter_rate=ADAPTER_RATE, negatives=1, local_epochs=EPOCHS, nesting=nesting, merges_again=nesting == "batch",
    )  # fmt: skip
    one = uneven_federation(method, engine)

    def seen() -> dict[str, list[Any]]:
        return {name: value.tolist() for name, value in one.predicting(torch.tensor(CLIENTS), None)[0].items()}

    clients = _start(seen(), variant)
    for number in (1, 2):
        one.round(number)
        for u in CLIENTS:
            (_merging_and_training_in_turn if nesting == "epoch" else _in_every_batch)(u, clients[u])
        uploads = [[list(row) for row in client.tables.own] for client in clients]
        for client in clients:
            client.tables.received = _mixed(uploads, UNEVEN_SHARES)
        _check(seen(), clients, variant)


def test_nestings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingError, match=r"nesting='batch': expected merges_again=True with it, found False"):
        FedEM(nesting="batch")
    with pytest.raises(SettingError, match=r"nesting='epoch': expected stop_below=0 with it, found 0\.1"):
        FedEM(nesting="epoch", stop_below=0.1)


def test_a_mixture_may_be_of_the_tables_of_those_alone_who_receive() -> None:
    """Clients 0 and 2 of three receive, with 1 and 3 of the samples; tables are one number each: 0, 5 and 1."""
    mixtures = Mixtures(Similarity(ALPHA), torch.zeros(1, 1, dtype=torch.float64), 3)
    tables = torch.tensor([[[0.0]], [[5.0]], [[1.0]]], dtype=torch.float64)
    mixtures.take(torch.arange(3), tables, torch.tensor([1, 6, 3]))
    mixtures.settle()
    mixtures.mix(1, {}, {"items": mixtures}, torch.tensor([True, False, True]))
    shares, alike = (1 / 4, 3 / 4), 1 / (1 + 1)
    first = _pair_weights(((shares[0] + ALPHA) / (1 + ALPHA), (shares[1] + ALPHA * alike) / (1 + ALPHA)))
    third = _pair_weights(((shares[0] + ALPHA * alike) / (1 + ALPHA), (shares[1] + ALPHA) / (1 + ALPHA)))
    expected = [[first[0], 0, first[1]], [0, 1, 0], [third[0], 0, third[1]]]
    assert mixtures.weights.tolist() == pytest.approx(np.array(expected), abs=1e-12)
    assert mixtures.sent(torch.tensor([1])).tolist() == [[[5.0]]], "who does not receive has its own"
    mixtures.mix(1, {}, {"items": mixtures}, torch.tensor([False, False, False]))
    assert mixtures.weights.tolist() == torch.eye(3).tolist()


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_server_mixes_for_those_who_receive_in_the_next_round(share: float) -> None:
    method = FedEM(embedding_size=SIZE, negatives=1, local_epochs=1, mixed_among="receiving")
    one = uneven_federation(method, "vector", receiving=share)
    clients = torch.tensor(CLIENTS)
    kinds = set()
    for number in range(1, 9):
        one.round(number)
        receives = one.server.download(number + 1, clients, for_training=True).receives
        weights = one.server.mixtures["items"].weights
        together = int(2 if receives is None else receives.sum())
        kinds.add(together)
        assert torch.equal(weights, torch.eye(2, dtype=torch.float64)) == (together < 2)
    assert kinds == ({0, 1, 2} if share == 0.5 else {2}), "all cases must have come about"
