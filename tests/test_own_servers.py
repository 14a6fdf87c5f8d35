"""Servers of one's own: the examples of six of them conform, and what is no rule is refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from examples.asynchronous_server import AsynchronousMF
from examples.clustered_network import ClusteredNetwork
from examples.fedprox import FedProx
from examples.loss_based_sampling import LossBased
from examples.scaffold import Scaffold
from examples.trimmed_mean import TrimmedMF, trimmed
from torch import Tensor

import ownview as ov
from ownview.base.errors import SettingError, TrainingError
from ownview.testing import CHECKS
from ownview.testing.federated import assert_close
from ownview.testing.worlds import federation, small_world

EXAMPLES: dict[str, ov.Method] = {
    "trimmed_mean": TrimmedMF(),
    "fedprox": FedProx(),
    "clustered_network": ClusteredNetwork(),
    "loss_based_sampling": LossBased(),
    "asynchronous_server": AsynchronousMF(),
    "scaffold": Scaffold(),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_conform(name: str, check: str) -> None:
    CHECKS[check](EXAMPLES[name])


def test_examples_are_short_and_whole() -> None:
    for name in EXAMPLES:
        source = (Path(__file__).resolve().parents[1] / "examples" / f"{name}.py").read_text(encoding="utf-8")
        assert len(source.splitlines()) <= 60
        assert "ownview." not in source.replace('"""', "")


@dataclass(frozen=True)
class Ruled(ov.Method):
    """Matrix factorisation under any server."""

    name: ClassVar[str] = "ruled"
    summary: ClassVar[str] = "for tests"
    combine: Any = None

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        shared = {"items": ov.table(ov.shared(4)), "bias": ov.shared()}
        return {"user": ov.private(4), **shared, "last items": ov.table(ov.held(4)), "last bias": ov.held()}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        return (ov.Phase((ov.Step(("user", "items", "bias"), ov.Sgd(0.1)),), 1),)

    def scores(self, p: ov.Params) -> Tensor:
        return p["items"] @ p["user"] + p["bias"]

    def server(self, world: ov.World) -> ov.Server:
        return ov.Server() if self.combine is None else ov.Server(self.combine)


def mean_of_sums(mean: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
    return mean


def mean_of_each(changes: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
    return {name: torch.einsum("u,u...->...", arrived.weights, one) for name, one in changes.items()}


def mean_of_coordinates(changes: Tensor, weights: Tensor) -> Tensor:
    # Rows that were not sent are 0: a mean over everybody needs everybody's weight.
    weight = weights.amax(1)
    return torch.einsum("u,u...->...", weight / weight.sum(), changes)


@pytest.mark.parametrize(
    "rule",
    [ov.Rule(mean_of_sums), ov.Rule(mean_of_each, "each"), ov.Rule(mean_of_coordinates, "coordinates")],
    ids=lambda rule: rule.needs,
)
@pytest.mark.parametrize("options", [{}, {"clients": "0.5", "server_optimizer": "adam"}, {"weighting": "uniform"}])
def test_a_rule_that_is_the_mean_is_the_mean(rule: ov.Rule, options: Mapping[str, object]) -> None:
    given = ov.FederationOptions.of(options)
    usual, ruled = (federation(one, small_world(9), options=given) for one in (Ruled(), Ruled(combine=rule)))
    for number in (1, 2):
        usual.round(number), ruled.round(number)
    assert_close(usual.server.shared, ruled.server.shared, 1e-12)


@pytest.mark.parametrize("clients", ["all", "0.5"])
def test_scaffolds_shared_control_is_the_mean_of_everybodys(clients: str) -> None:
    one = federation(Scaffold(), small_world(9), options=ov.FederationOptions(clients=clients))
    for number in (1, 2, 3):
        loss = one.round(number).loss
        assert loss is not None
        assert loss != 0.0, "a closing has no loss; that of training counts"
    controls = one.clients.whole("own control", torch.arange(9))
    assert float(controls.abs().sum()) > 0.0
    assert_close({"": one.server.shared["control"]}, {"": controls.mean(0)}, 1e-12)


def test_the_trimmed_mean_is_that_of_the_federations_setting() -> None:
    """`robust=trimmed:S` adds up over all clients; the rule, over those that sent a row."""
    changes = torch.tensor([[1.0, 5.0], [2.0, 0.0], [3.0, 7.0], [90.0, 0.0], [-50.0, 9.0]])[..., None]
    weights = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert trimmed(changes, weights, 0.2).tolist() == [[2.0], [7.0]]
    assert trimmed(changes, torch.zeros(5, 2), 0.2).tolist() == [[0.0], [0.0]]


def test_a_rule_may_remember() -> None:
    """FedAvgM in one function: v <- b v + mean, x <- x + v; as the federation's own momentum is."""

    def momentum(mean: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
        velocity = {name: 0.9 * values[f"last {name}"] + one for name, one in mean.items()}
        return velocity | {f"last {name}": one for name, one in velocity.items()}

    ruled = federation(Ruled(combine=ov.Rule(momentum)), small_world(9))
    usual = federation(Ruled(), small_world(9), options=ov.FederationOptions(server_optimizer="momentum"))
    for number in (1, 2, 3):
        ruled.round(number), usual.round(number)
    assert_close(usual.server.shared, ruled.server.shared, 1e-12)


@pytest.mark.parametrize(
    ("combine", "reason"),
    [
        (mean_of_sums, r"function mean_of_sums; expected Mean\(\).*Rule\(mean_of_sums, needs=...\)"),
        (ov.Mean, r"is the class Mean; expected"),
        (3, r"is int 3; expected"),
        (ov.Rule(mean_of_each, "sums"), r"the server's rule fails on uploads of two clients"),
        (ov.Rule(lambda mean, values, arrived: mean["items"]), r"returned a Tensor; expected changes by name"),
        (ov.Rule(lambda mean, values, arrived: {"itmes": mean["items"]}), r"'itmes', which no client sends.*'items'"),
        (ov.Rule(lambda mean, values, arrived: {"items": mean["items"][0]}), r"as \(4,\); expected shape \(3, 4\)"),
        (ov.Rule(lambda changes, weights: changes, "coordinates"), r"expected shape"),
    ],
)
def test_what_is_no_rule_is_refused_in_one_line(combine: Any, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as refused:
        federation(Ruled(combine=combine), small_world(5))
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="a rule needs one of"):
        ov.Rule(mean_of_sums, "all")


def test_rules_about_single_uploads_go_with_no_mask_and_no_second_rule() -> None:
    ruled = Ruled(combine=ov.Rule(mean_of_each, "each"))
    for options, reason in (
        ({"privacy": "masked:clip=1"}, "every single upload"),
        ({"robust": "median"}, "rule of its own"),
    ):
        with pytest.raises(SettingError, match=reason):
            federation(ruled, small_world(9), options=ov.FederationOptions.of(options))


class Remembering(ov.Mixing):
    """Everybody's mean, and how often it was asked."""

    def weights(self, known: ov.Known) -> tuple[Tensor, dict[str, Tensor]]:
        asked = known.memory.get("asked", torch.zeros(1)) + 1
        assert int(asked) == known.round
        assert set(known.every) == {"hidden", "output"}
        assert known.every["hidden"].shape == (len(known.clients), 16 * 8)
        return torch.ones(len(known.clients), len(known.clients)) / len(known.clients), {"asked": asked}


class WrongSize(ov.Mixing):
    """Weights of no client."""

    def weights(self, known: ov.Known) -> Tensor:
        return torch.ones(1, 1)


def test_a_mixture_sees_the_round_and_remembers_over_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusteredNetwork, "server", lambda self, world: ov.Server(mixing=Remembering()))
    one, other = (federation(ClusteredNetwork(), small_world(7)) for _ in range(2))
    one.round(1)
    other.unpack({name: value.clone() for name, value in one.pack().items()})
    for each in (one, other):
        each.round(2)
    assert_close(one.server.shared, other.server.shared, 1e-15)
    assert int(one.server.mixtures["hidden"].memory["asked"]) == 2
    monkeypatch.setattr(ClusteredNetwork, "server", lambda self, world: ov.Server(mixing=WrongSize()))
    with pytest.raises(TrainingError, match=r"weights came as \(1, 1\), not \(7, 7\)"):
        federation(ClusteredNetwork(), small_world(7)).round(1)


def test_an_opening_may_copy_a_shared_table_into_one_of_the_clients_own() -> None:
    """Every row of it, also those that no sample is about."""

    class Copied(Ruled):
        def params(self, world: ov.World) -> dict[str, ov.Param]:
            return {**super().params(world), "mine": ov.table(ov.private(4))}

        def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
            return tuple(replace(one, opening=lambda p, context: {"mine": p["items"]}) for one in super().phases(world))

    one = federation(Copied(), small_world(9))
    before = one.server.shared["items"].clone()
    one.round(1)
    assert torch.equal(one.clients.whole("mine", torch.arange(9)), before.expand(9, -1, -1))
