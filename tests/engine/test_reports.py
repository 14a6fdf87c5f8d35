"""What the server sees besides shared values, what clients receive besides them, and what the engine fills in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from ownview import (
    FederationOptions,
    FedFast,
    FedMF,
    GPFedRec,
    Method,
    OwnHistory,
    Param,
    Params,
    PerFedRec,
    PFedGraph,
    Phase,
    World,
)
from ownview.base.errors import SettingError
from ownview.federation.declared_cost import DeclaredCost
from ownview.federation.wire import dense_size
from ownview.testing import federation, small_world

FAST = FedFast(embedding_size=3, local_epochs=2)
GRAPH = GPFedRec(embedding_size=4, local_epochs=2, rate_factor=0.01)
CLUSTERED = PerFedRec(embedding_size=3, local_epochs=2)


# --- reported values ---


def test_the_server_sees_what_clients_last_reported() -> None:
    one = federation(replace(FAST, decay=0.0), small_world(), options=FederationOptions(clients="0.4"))
    begun = one.state.own["user"].clone()
    assert torch.equal(one.state.reported["user"], begun)
    cohort = one.participants(1)
    one.round(1)
    assert torch.allclose(one.state.reported["user"], one.state.own["user"], atol=1e-12)
    stayed = [u for u in range(one.world.num_clients) if u not in cohort.tolist()]
    assert torch.equal(one.state.own["user"][stayed], begun[stayed])
    assert not torch.equal(one.state.own["user"][cohort], begun[cohort])


@pytest.mark.parametrize("protection", ["laplace:0.5", "gaussian:clip=0.1,noise=1"])
def test_reports_are_protected_like_all_that_leaves(protection: str) -> None:
    noisy = federation(FAST, small_world(), options=FederationOptions(privacy=protection))
    plain = federation(FAST, small_world())
    noisy.round(1)
    plain.round(1)
    assert torch.equal(noisy.state.own["user"], plain.state.own["user"])
    assert ((noisy.state.reported["user"] - noisy.state.own["user"]).abs() > 1e-9).all()


def test_clipping_covers_the_report() -> None:
    """Shared values and report together are cut to the norm; with hardly any noise the server sees just that."""
    clip = 0.01
    options = FederationOptions(privacy=f"gaussian:clip={clip},noise=0.000001")
    one = federation(FAST, small_world(), options=options)
    begun = one.state.reported["user"].clone()
    one.round(1)
    assert float((one.state.reported["user"] - begun).norm(dim=1).max()) < clip


def test_reports_count_in_bytes_up() -> None:
    fast, plain = (federation(method, small_world()) for method in (FAST, FedMF(embedding_size=3, local_epochs=2)))
    reports, shared = fast.round(1), plain.round(1)
    assert reports.bytes_up - shared.bytes_up == dense_size(fast.state.own["user"][0]) == 8 + 3 * 8
    assert reports.bytes_down == shared.bytes_down
    cost = DeclaredCost.of(FAST.params(fast.world), fast.world)
    assert cost.bytes_up - cost.bytes_down == 4 * 3
    assert cost.private == {"user": 3}


def test_only_private_values_without_rows_are_reported() -> None:
    for wrong in ({"shared": True}, {"rows": True}):
        with pytest.raises(ValueError, match="reported makes sense for private values without rows"):
            Param((2,), reported=True, **wrong)


def test_poisson_participation_is_drawn_client_by_client() -> None:
    options = FederationOptions(clients="poisson:0.5")
    fast, plain = (federation(method, small_world(), options=options) for method in (FAST, FedMF()))
    assert fast.participants(1).tolist() == plain.participants(1).tolist()


# --- rows with weights of their own ---


def test_rows_that_nobody_touched_stay_and_others_are_not_diluted() -> None:
    """A row that only one client touched becomes that client's."""
    split = small_world()
    one = federation(FAST, split, options=FederationOptions(clients="1"))
    begun = one.state.shared["items"].clone()
    (client,) = one.participants(1).tolist()
    samples = one.samples(1, torch.tensor([client]))
    one.round(1)
    moved = (one.state.shared["items"] != begun).any(1).nonzero()[:, 0]
    assert moved.tolist() == samples.items[0].tolist()


def test_noise_on_every_row_is_weighed_too() -> None:
    one = federation(FAST, small_world(), options=FederationOptions(privacy="laplace:0.5"))
    begun = one.state.shared["items"].clone()
    one.round(1)
    assert (one.state.shared["items"] != begun).all()
    assert torch.isfinite(one.state.shared["items"]).all()


# --- the mean of mixtures ---


def test_clients_start_from_the_mean_of_mixtures() -> None:
    one = federation(GRAPH, small_world(), options=FederationOptions(clients="0.6"))
    for number in (1, 2):
        one.round(number)
    mixtures = one.state.mixtures["items"]
    everybody = torch.arange(one.world.num_clients)
    expected = mixtures.sent(everybody)[mixtures.known].mean(0)
    assert 0 < int(mixtures.known.sum()) < len(everybody)
    assert torch.allclose(mixtures.common(), expected, atol=1e-12)
    samples = one.samples(3, everybody)
    values = one.state.receive(samples).values
    for u in (0, 7):
        rows = samples.items[u][: samples.num_rows[u]]
        assert torch.allclose(values["mean"][u][: len(rows)], expected[rows], atol=1e-12)
        assert torch.allclose(values["guide"][u][: len(rows)], mixtures.sent(everybody)[u][rows], atol=1e-12)


def test_before_anybody_has_uploaded_the_mean_is_the_initial_table() -> None:
    one = federation(GRAPH, small_world())
    assert torch.equal(one.state.mixtures["items"].common(), one.state.shared["items"])


def test_a_client_that_does_not_receive_starts_from_its_own_table() -> None:
    one = federation(GRAPH, small_world())
    one.round(1)
    samples = one.samples(2, torch.tensor([4, 5]))
    received = one.state.receive(samples, torch.tensor([True, False]))
    assert torch.equal(received.common["mean"][0], one.state.mixtures["items"].common())
    assert torch.equal(received.common["mean"][1], one.state.whole("items", torch.tensor([5]))[0])


@pytest.mark.parametrize("method", [GRAPH, CLUSTERED, PFedGraph(embedding_size=3, local_epochs=2)])
def test_engines_agree_where_not_everybody_takes_part_or_receives(method: Method) -> None:
    options = FederationOptions(clients="0.6", receiving=0.5)
    alone, stacked = (
        federation(method, small_world(), options=options, engine=engine) for engine in ("loop", "vector")
    )
    for number in (1, 2, 3):
        alone.round(number)
        stacked.round(number)
    packed = stacked.state.pack()
    for name, value in alone.state.pack().items():
        assert torch.allclose(value.double(), packed[name].double(), atol=1e-9), name


def test_the_mean_counts_in_bytes_down() -> None:
    one = federation(GRAPH, small_world())
    report = one.round(1)
    assert report.bytes_down - report.bytes_up == dense_size(one.state.shared["items"])
    cost = DeclaredCost.of(GRAPH.params(one.world), one.world)
    assert cost.bytes_down == 2 * cost.bytes_up
    assert cost.private["mean"] == cost.private["guide"] == 4 * one.world.num_items


@dataclass(frozen=True)
class Unmixed(GPFedRec):
    server_mixing = None


def test_a_mean_of_mixtures_needs_mixtures() -> None:
    with pytest.raises(SettingError, match="'items' wants a mean of mixtures, and no server_mixing makes any"):
        federation(Unmixed(), small_world())
    with pytest.raises(ValueError, match="common makes sense for tables with a mixture beside them"):
        Param((2,), rows=True, shared=True, common="mean")


# --- history ---


@pytest.mark.parametrize("dense", [False, True])
def test_a_history_has_every_training_item_once(dense: bool) -> None:
    """Padding rows repeat an item that a client may have; they must not count again."""
    split = small_world()
    one = federation(CLUSTERED, split, dense=dense)
    clients = torch.arange(one.world.num_clients)
    samples = one.samples(1, clients)
    history = one.state.receive(samples).values["history"]
    for u in clients.tolist():
        assert samples.items[u][history[u] > 0].sort().values.tolist() == sorted(split.train.of(u).tolist())
    whole = one.state.predicting(clients, None)[0]["history"]
    assert whole.sum(1).tolist() == split.train.lengths.tolist()
    one.round(1)
    assert torch.equal(one.state.predicting(clients, None)[0]["history"], whole)
    assert not any("history" in name for name in one.state.pack())


@dataclass(frozen=True)
class MovesHistory(FedMF):
    def params(self, world: World) -> dict[str, Param]:
        return {**super().params(world), "seen": Param((), rows=True, initial=OwnHistory())}

    def phases(self, world: World) -> tuple[Phase, ...]:
        (phase,) = super().phases(world)
        (step,) = phase.steps
        return (replace(phase, steps=(replace(step, names=("user", "seen")),)),)

    def scores(self, p: Params) -> Tensor:
        return super().scores(p) + p["seen"]


def test_a_history_is_no_parameter() -> None:
    with pytest.raises(SettingError, match="moves 'seen', the client's history, which is data and no parameter"):
        federation(MovesHistory(), small_world())
