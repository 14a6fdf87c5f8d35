"""Participation, the server's mean and its optimisers."""

from __future__ import annotations

import math

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.config.participation import participants, participation
from ownview.federation.optimizer import ServerOptimizer
from ownview.federation.options import FederationOptions
from ownview.messages.sums import MeanPartial, add_rows
from tests.messages.uploads import upload_of

CPU = torch.device("cpu")


def test_the_mean_of_touched_rows_equals_the_mean_of_full_tables() -> None:
    torch.manual_seed(0)
    table = torch.randn(5, 3, dtype=torch.float64)
    own = [table.clone() for _ in range(2)]
    own[0][[0, 2]] += 1.5
    own[1][[2, 4]] -= 0.5
    total = MeanPartial({"items": table}, table, "samples")
    rows = torch.tensor([[0, 2], [2, 4]])
    changes = torch.stack([own[k][rows[k]] - table[rows[k]] for k in range(2)])
    total.add(upload_of({"items": changes}, items=rows.tolist(), samples=[3, 1]))
    expected = (3 * own[0] + own[1]) / 4
    assert torch.allclose(table + total.mean()["items"], expected, atol=1e-12)


def test_parameters_without_rows_are_averaged_too() -> None:
    changes = {"w": torch.tensor([[1.0, 0.0], [4.0, 2.0]])}
    for weighting, expected in (("samples", [3.0, 4 / 3]), ("uniform", [2.5, 1.0])):
        total = MeanPartial({"w": torch.zeros(2)}, torch.zeros(0), weighting)
        total.add(upload_of(whole=changes, items=[[0], [0]], samples=[1, 2]))
        assert total.mean()["w"].tolist() == pytest.approx(expected)


def test_nobody_taking_part_changes_nothing() -> None:
    total = MeanPartial({"w": torch.ones(2)}, torch.zeros(0), "samples")
    assert total.mean()["w"].tolist() == [0.0, 0.0]


def test_add_rows_adds_repeated_items_of_different_clients() -> None:
    table = torch.zeros(3, 2)
    add_rows(table, torch.tensor([[0, 1], [1, 2]]), torch.ones(2, 2, 2))
    assert table.tolist() == [[1, 1], [2, 2], [1, 1]]


def test_server_optimisers_by_hand() -> None:
    shared, change = {"w": torch.tensor([1.0])}, {"w": torch.tensor([0.5])}
    plain = ServerOptimizer(FederationOptions(server_learning_rate=2.0), shared)
    assert plain.apply(shared, change)["w"].item() == pytest.approx(2.0)
    momentum = ServerOptimizer(FederationOptions(server_optimizer="momentum", server_momentum=0.5), shared)
    once = momentum.apply(shared, change)
    assert momentum.apply(once, change)["w"].item() == pytest.approx(1.5 + 0.75)
    adam = ServerOptimizer(FederationOptions(server_optimizer="adam", server_learning_rate=0.1), shared)
    once = adam.apply(shared, change)
    assert once["w"].item() == pytest.approx(1.1)
    twice = adam.apply(once, {"w": torch.tensor([-0.25])})
    first = (0.9 * 0.05 + 0.1 * -0.25) / (1 - 0.9**2)
    second = (0.99 * 0.0025 + 0.01 * 0.0625) / (1 - 0.99**2)
    assert twice["w"].item() == pytest.approx(1.1 + 0.1 * first / (math.sqrt(second) + 1e-8), abs=1e-6)


def test_the_old_shared_values_are_left_alone() -> None:
    shared = {"w": torch.tensor([1.0])}
    ServerOptimizer(FederationOptions(), shared).apply(shared, {"w": torch.tensor([5.0])})
    assert shared["w"].item() == 1.0


@pytest.mark.parametrize(("text", "expected"), [("all", 200), ("0.6", 120), ("37", 37), ("500", 200)])
def test_how_many_take_part(text: str, expected: int) -> None:
    chosen = participants(participation(text), 0, 1, 200, CPU)
    assert len(chosen) == len(set(chosen.tolist())) == expected


def test_poisson_participation_varies_around_its_probability() -> None:
    sizes = [len(participants(participation("poisson:0.3"), 0, number, 1000, CPU)) for number in range(1, 41)]
    assert len(set(sizes)) > 5
    assert abs(sum(sizes) / len(sizes) - 300) < 5 * math.sqrt(1000 * 0.3 * 0.7 / 40)


def test_another_round_or_seed_asks_others() -> None:
    chosen = [
        participants(participation("20"), seed, number, 200, CPU).tolist() for seed, number in ((0, 1), (0, 2), (1, 1))
    ]
    assert chosen[0] != chosen[1]
    assert chosen[0] != chosen[2]
    assert participants(participation("20"), 0, 1, 200, CPU).tolist() == chosen[0]


@pytest.mark.parametrize(
    "text",
    ["0", "-3", "1.5", "0.0", "many", "poisson:0", "poisson:2", "poisson:nan", "poisson:x", "turns:0", "turns:0.5", ""],
)
def test_bad_participation_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="clients"):
        FederationOptions(clients=text)
