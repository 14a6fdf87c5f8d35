"""FedRecon's rounds and its predictions, worked out step by step with plain arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import ownview as ov
from ownview import DualPersonalisation, ElasticMerging, FedMF, FedRecon, Method, Phase, Step
from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.engine.samples import half_of
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.runs.training.watching import Watch
from ownview.seam.client import Client
from ownview.seam.training import World
from ownview.testing.worlds import federation as small_federation
from ownview.testing.worlds import small_world
from tests.methods.golden import ITEMS, POSITIVES, Matrix, Vector, dot, federation, sigmoid

SIZE, RATE, TABLE_RATE = 2, 0.4, 1.5
METHOD = FedRecon(
    embedding_size=SIZE,
    negatives=2,
    reconstruction_epochs=3,
    local_epochs=2,
    learning_rate=RATE,
    table_rate_factor=TABLE_RATE / (RATE * ITEMS),
    user_scale=1.0,
)


def _halves(one: Federation, number: int, client: int) -> dict[str, int]:
    """Which of the client's two positives is the support's; the other is the query's. Every round draws anew."""
    samples = one.work.samples(number, torch.tensor([client]))
    half = half_of(samples, "support", 3, derive(3, "parts", number)).alone(0)
    assert half.labels.tolist() == [1, 0, 0]
    support = int(half.items[half.rows[0]])
    return {"support": support, "query": next(i for i in POSITIVES[client] if i != support)}


def _errors(client: int, positives: tuple[int, ...], user: Vector, table: Matrix) -> Vector:
    """d(mean loss)/d(score): every positive once, both items the client does not have once for each positive."""
    samples = 3 * len(positives)
    found = []
    for i in range(ITEMS):
        slope = sigmoid(dot(user, table[i]))
        if i in POSITIVES[client]:
            found.append((slope - 1) / samples if i in positives else 0.0)
        else:
            found.append(len(positives) * slope / samples)
    return found


def _reconstructed(client: int, positives: tuple[int, ...], start: Vector, table: Matrix) -> Vector:
    user = list(start)
    for _ in range(3):
        errors = _errors(client, positives, user, table)
        user = [user[j] - RATE * sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
    return user


def _trained(client: int, positives: tuple[int, ...], user: Vector, table: Matrix) -> Matrix:
    mine = [list(row) for row in table]
    for _ in range(2):
        errors = _errors(client, positives, user, mine)
        mine = [[mine[i][j] - TABLE_RATE * errors[i] * user[j] for j in range(SIZE)] for i in range(ITEMS)]
    return mine


@pytest.mark.parametrize("kept", [False, True], ids=["plain", "with dual personalisation"])
@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_two_rounds_and_predictions(engine: str, kept: bool) -> None:
    one = federation(DualPersonalisation(inner=METHOD) if kept else METHOD, engine)
    start, table = one.clients.starts["user"].tolist(), one.server.shared["items"].tolist()
    for number in (1, 2):
        halves = [_halves(one, number, client) for client in (0, 1)]
        one.round(number)
        users = [_reconstructed(u, (halves[u]["support"],), start, table) for u in (0, 1)]
        tables = [_trained(u, (halves[u]["query"],), users[u], table) for u in (0, 1)]
        table = [[(tables[0][i][j] + tables[1][i][j]) / 2 for j in range(SIZE)] for i in range(ITEMS)]
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
    seen = tables if kept else [table, table]
    users = [_reconstructed(u, POSITIVES[u], start, seen[u]) for u in (0, 1)]
    by_hand = np.array([[dot(users[u], row) for row in seen[u]] for u in (0, 1)])
    scorer = scorer_of(one)
    assert scorer.scores(torch.tensor([0, 1]), None).numpy() == pytest.approx(by_hand, abs=1e-9)
    asked = torch.tensor([[3, 1], [0, 2]])
    expected = np.take_along_axis(by_hand[::-1], asked.numpy(), axis=1)
    assert scorer.scores(torch.tensor([1, 0]), asked).numpy() == pytest.approx(expected, abs=1e-9)
    watched = Watch(one, ("a", "b"), (0, 1)).tensors()
    assert [watched["a.user"].tolist(), watched["b.user"].tolist()] == pytest.approx(np.array(users), abs=1e-9)


def test_without_a_split_both_halves_are_everything() -> None:
    whole = FedRecon(split=False)
    assert [phase.part for phase in whole.phases(World(2, 4))] == ["all", "all"]
    assert [phase.part for phase in METHOD.phases(World(2, 4))] == ["support", "query"]


def test_predicting_keeps_and_sends_nothing_and_repeats() -> None:
    one = small_federation(FedRecon(embedding_size=4), small_world())
    one.round(1)
    before = {name: value.clone() for name, value in one.pack().items()}
    clients = torch.arange(one.world.num_clients)
    scores = [scorer_of(one).scores(clients, None) for _ in range(2)]
    assert torch.equal(scores[0], scores[1])
    assert all(torch.equal(value, before[name]) for name, value in one.pack().items())
    assert set(before) == {"shared.items", "joined", "server.steps", "done"}, "no private value outlives a round"
    few = scorer_of(one).scores(clients[[5, 2, 5]], None)
    assert torch.allclose(few, scores[0][[5, 2, 5]], atol=1e-12)


def test_a_saved_run_recommends_what_it_ranked(tmp_path: Path) -> None:
    data = small_world().data
    run = ov.run(FedRecon(embedding_size=4), data, rounds=2, out=tmp_path / "run")
    opened = ov.open_run(tmp_path / "run", data)
    user = data.users[1]
    assert run.recommend(user, 5) == opened.recommend(user, 5)
    trainer_scores = [one.score for one in opened.recommend(user, 5)]
    assert trainer_scores == sorted(trainer_scores, reverse=True)
    assert len(set(trainer_scores)) == 5


@dataclass(frozen=True)
class _TunesItsTable(FedMF):
    def client(self, world: World) -> Client:
        tuning = Phase((Step(("items",), ov.Sgd(0.1)),), 1)
        return replace(super().client(world), before_predicting=(tuning,))


def test_what_would_be_large_may_not_be_trained_before_predicting() -> None:
    with pytest.raises(SettingError, match=r"before predicting moves 'items'; expected private parameters"):
        federation(_TunesItsTable(negatives=2), "vector")


@pytest.mark.parametrize("inner", [FedRecon()])
def test_an_adapter_has_nothing_to_learn_from_before_the_reconstruction(inner: Method) -> None:
    with pytest.raises(SettingError, match=r"elastic-merging .*'user' of fedrecon.* has learnt nothing"):
        ElasticMerging(inner=inner)
