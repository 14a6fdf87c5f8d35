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
    Param,
    Params,
    PerFedRec,
    PFedGraph,
    Phase,
    Server,
    World,
    history,
)
from ownview.base.errors import SettingError
from ownview.messages.wire import dense_size
from ownview.round.cost import declared_cost
from ownview.seam.roles import REPORTED, SHARED
from ownview.testing.worlds import federation, small_world

FAST = FedFast(embedding_size=3, local_epochs=2)
GRAPH = GPFedRec(embedding_size=4, local_epochs=2, rate_factor=0.01)
CLUSTERED = PerFedRec(embedding_size=3, local_epochs=2)


# --- reported values ---


def test_the_server_sees_what_clients_last_reported() -> None:
    one = federation(replace(FAST, decay=0.0), small_world(), options=FederationOptions(clients="0.4"))
    begun = one.clients.own["user"].clone()
    assert torch.equal(one.server.reported["user"], begun)
    cohort = one.participants(1)
    one.round(1)
    assert torch.allclose(one.server.reported["user"], one.clients.own["user"], atol=1e-12)
    stayed = [u for u in range(one.world.num_clients) if u not in cohort.tolist()]
    assert torch.equal(one.clients.own["user"][stayed], begun[stayed])
    assert not torch.equal(one.clients.own["user"][cohort], begun[cohort])


def test_reports_are_protected_like_all_that_leaves() -> None:
    noisy = federation(FAST, small_world(), options=FederationOptions(privacy="laplace:0.5"))
    plain = federation(FAST, small_world())
    noisy.round(1)
    plain.round(1)
    assert torch.equal(noisy.clients.own["user"], plain.clients.own["user"])
    assert ((noisy.server.reported["user"] - noisy.clients.own["user"]).abs() > 1e-9).all()


def test_reports_count_in_bytes_up() -> None:
    """A report is a table of one axis behind its name; how much FedMF's clients train is FedMF's server's to know."""
    fast, plain = (federation(method, small_world()) for method in (FAST, FedMF(embedding_size=3, local_epochs=2)))
    reports, shared = fast.round(1), plain.round(1)
    assert reports.bytes_up - shared.bytes_up == 1 + len("user") + dense_size((3,), 8) == 1 + 4 + 8 + 3 * 8
    moves = 1 + len("move user") + dense_size((3,), 8)  # what absent clients have to follow by
    assert reports.bytes_down - shared.bytes_down == moves
    cost = declared_cost(FAST.client(fast.world), fast.world)
    assert cost["bytes_up_per_client"] - cost["bytes_down_per_client"] == 4 * 3
    assert cost["private_values"] == {"user": 3}


def test_a_report_is_no_table() -> None:
    with pytest.raises(ValueError, match="a reported parameter is no table"):
        Param((2,), REPORTED, rows=True)


def test_absent_clients_follow_by_their_next_download() -> None:
    """They predict with the moved vector at once; their own changes when they take part again."""
    one = federation(FAST, small_world(), options=FederationOptions(clients="0.4"))
    begun = one.clients.own["user"].clone()
    cohort = one.participants(1)
    one.round(1)
    away = torch.tensor([u for u in range(one.world.num_clients) if u not in cohort.tolist()])
    moves = one.server.pending["user"]
    assert moves[away].abs().sum() > 0
    assert not moves[cohort].any()
    assert torch.equal(one.clients.own["user"][away], begun[away])
    predicted = one.predicting(away, None, frozenset({"user"}))[0]["user"]
    assert torch.allclose(predicted, begun[away] + moves[away], atol=1e-12)
    assert torch.allclose(one.server.reported["user"][away], predicted, atol=1e-12)
    samples = one.work.samples(2, away[:2])
    opened = one.clients.open(samples, one.server.download(2, away[:2])).values["user"]
    assert torch.allclose(opened, predicted[:2], atol=1e-12)
    again = one.participants(2)
    assert set(again.tolist()) & set(away.tolist()), "a client that was away must come for this test to mean something"
    one.round(2)
    assert not one.server.pending["user"][again].any(), "who has followed need not follow again"
    assert torch.equal(one.predicting(again, None, frozenset({"user"}))[0]["user"], one.clients.own["user"][again])


def test_poisson_participation_is_drawn_client_by_client() -> None:
    options = FederationOptions(clients="poisson:0.5")
    fast, plain = (federation(method, small_world(), options=options) for method in (FAST, FedMF()))
    assert fast.participants(1).tolist() == plain.participants(1).tolist()


# --- rows with weights of their own ---


def test_rows_that_nobody_touched_stay_and_others_are_not_diluted() -> None:
    """A row that only one client touched becomes that client's."""
    split = small_world()
    one = federation(FAST, split, options=FederationOptions(clients="1"))
    begun = one.server.shared["items"].clone()
    (client,) = one.participants(1).tolist()
    samples = one.work.samples(1, torch.tensor([client]))
    one.round(1)
    moved = (one.server.shared["items"] != begun).any(1).nonzero()[:, 0]
    assert moved.tolist() == samples.items[0].tolist()


def test_noise_on_every_row_is_weighed_too() -> None:
    one = federation(FAST, small_world(), options=FederationOptions(privacy="laplace:0.5"))
    begun = one.server.shared["items"].clone()
    one.round(1)
    assert (one.server.shared["items"] != begun).all()
    assert torch.isfinite(one.server.shared["items"]).all()


# --- the mean of mixtures ---


def test_clients_start_from_the_mean_of_mixtures() -> None:
    one = federation(GRAPH, small_world(), options=FederationOptions(clients="0.6"))
    for number in (1, 2):
        one.round(number)
    mixtures = one.server.mixtures["items"]
    clients = torch.arange(one.world.num_clients)
    expected = mixtures.sent(clients)[mixtures.known].mean(0)
    assert 0 < int(mixtures.known.sum()) < len(clients)
    assert torch.allclose(mixtures.common(), expected, atol=1e-12)
    samples = one.work.samples(3, clients)
    values = one.clients.open(samples, one.server.download(3, clients)).values
    for u in (0, 7):
        rows = samples.items[u][: samples.num_rows[u]]
        assert torch.allclose(values["mean"][u][: len(rows)], expected[rows], atol=1e-12)
        assert torch.allclose(values["guide"][u][: len(rows)], mixtures.sent(clients)[u][rows], atol=1e-12)


def test_before_anybody_has_uploaded_the_mean_is_the_initial_table() -> None:
    one = federation(GRAPH, small_world())
    assert torch.equal(one.server.mixtures["items"].common(), one.server.shared["items"])


def test_a_client_that_does_not_receive_starts_from_its_own_table() -> None:
    one = federation(GRAPH, small_world())
    one.round(1)
    samples = one.work.samples(2, torch.tensor([4, 5]))
    download = one.server.download(2, samples.clients)
    opened = one.clients.open(samples, replace(download, receives=torch.tensor([True, False])))
    assert torch.equal(opened.beside["mean"][0], one.server.mixtures["items"].common())
    assert torch.equal(opened.beside["mean"][1], one.clients.whole("items", torch.tensor([5]))[0])


@pytest.mark.parametrize("method", [GRAPH, CLUSTERED, PFedGraph(embedding_size=3, local_epochs=2)])
def test_engines_agree_where_not_everybody_takes_part_or_receives(method: Method) -> None:
    options = FederationOptions(clients="0.6", receiving=0.5)
    alone, stacked = (
        federation(method, small_world(), options=options, engine=engine) for engine in ("loop", "vector")
    )
    for number in (1, 2, 3):
        alone.round(number)
        stacked.round(number)
    packed = stacked.pack()
    for name, value in alone.pack().items():
        assert torch.allclose(value.double(), packed[name].double(), atol=1e-9), name


def test_the_mean_counts_in_bytes_down() -> None:
    one = federation(GRAPH, small_world())
    report = one.round(1)
    shape = tuple(one.server.shared["items"].shape)
    assert report.bytes_down - report.bytes_up == 1 + len("mean") + dense_size(shape, 8)
    cost = declared_cost(GRAPH.client(one.world), one.world)
    assert cost["bytes_down_per_client"] == 2 * cost["bytes_up_per_client"]
    assert cost["private_values"]["mean"] == cost["private_values"]["guide"] == 4 * one.world.num_items


@dataclass(frozen=True)
class Unmixed(GPFedRec):
    def server(self, world: World) -> Server:
        return Server()


def test_a_mean_of_mixtures_needs_mixtures() -> None:
    with pytest.raises(SettingError, match="'items' wants a mean of mixtures, and no mixing of the server makes any"):
        federation(Unmixed(), small_world())
    with pytest.raises(ValueError, match="everybodys_mean belongs to personal values, which the server mixes"):
        Param((2,), SHARED, rows=True, everybodys_mean="mean")


# --- history ---


@pytest.mark.parametrize("dense", [False, True])
def test_a_history_has_every_training_item_once(dense: bool) -> None:
    """Padding rows repeat an item that a client may have; they must not count again."""
    split = small_world()
    one = federation(CLUSTERED, split, dense=dense)
    clients = torch.arange(one.world.num_clients)
    samples = one.work.samples(1, clients)
    seen = one.clients.open(samples, one.server.download(1, clients)).values["history"]
    for u in clients.tolist():
        assert samples.items[u][seen[u] > 0].sort().values.tolist() == sorted(split.train.of(u).tolist())
    whole = one.predicting(clients, None)[0]["history"]
    assert whole.sum(1).tolist() == split.train.lengths.tolist()
    one.round(1)
    assert torch.equal(one.predicting(clients, None)[0]["history"], whole)
    assert not any("history" in name for name in one.pack())


@dataclass(frozen=True)
class MovesHistory(FedMF):
    def params(self, world: World) -> dict[str, Param]:
        return {**super().params(world), "seen": history()}

    def phases(self, world: World) -> tuple[Phase, ...]:
        (phase,) = super().phases(world)
        (step,) = phase.steps
        return (replace(phase, steps=(replace(step, names=("user", "seen")),)),)

    def scores(self, p: Params) -> Tensor:
        return super().scores(p) + p["seen"]


def test_a_history_is_no_parameter() -> None:
    with pytest.raises(SettingError, match="moves 'seen', the client's history, which is data and no parameter"):
        federation(MovesHistory(), small_world())
