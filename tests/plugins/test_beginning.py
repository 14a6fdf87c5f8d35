"""Plug-ins around methods whose clients have their own table beside received ones: what a round begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ownview import PLGC, ElasticMerging, FedEM, FedMF, GPFedRec, LateAggregation, PerFedRec, PFedGraph
from ownview.base.errors import SettingError
from ownview.parts.shared_table import shared_table
from ownview.seam.method import Federated, Method
from ownview.seam.plugin import Plugin
from ownview.seam.training import ANY_WORLD, World
from ownview.testing.worlds import federation, small_world

BESIDE: dict[str, Method] = {"mean": GPFedRec(), "mixture": PFedGraph(), "cluster": PerFedRec()}
"""By the name of the received table that rounds begin with."""


def tables_after(method: Federated, rounds: int = 3) -> Tensor:
    """[clients, items, d] what clients predict with after some rounds."""
    one = federation(method, small_world())
    for number in range(1, rounds + 1):
        one.round(number)
    return one.clients.whole("items", torch.arange(one.world.num_clients))


@pytest.mark.parametrize("received", BESIDE)
def test_the_table_a_round_begins_with_is_known_by_name(received: str) -> None:
    assert shared_table(BESIDE[received].client(ANY_WORLD), "inner", "any").received == received
    assert shared_table(FedMF().client(ANY_WORLD), "inner", "any").received == "received"


@pytest.mark.parametrize("inner", BESIDE.values(), ids=BESIDE)
def test_merging_with_all_of_it_is_the_method_itself(inner: Method) -> None:
    merged = tables_after(ElasticMerging(inner=inner, variant="sm", rho=1.0))
    assert torch.allclose(merged, tables_after(inner), rtol=0, atol=1e-9)


@pytest.mark.parametrize("inner", BESIDE.values(), ids=BESIDE)
def test_merging_with_none_of_it_keeps_the_own_rows(inner: Method) -> None:
    # rows never sampled stay as they were in the first round, whatever others have made of them since
    kept = ElasticMerging(inner=inner, variant="sm", rho=0.0)
    one = federation(kept, small_world())
    clients = torch.arange(one.world.num_clients)
    before = one.clients.whole("items", clients)
    one.round(1)
    first = one.clients.whole("items", clients)
    untouched = (first == before).all(-1)
    assert 0 < int(untouched.sum()) < untouched.numel()
    one.round(2)
    again = (one.clients.whole("items", clients) == first).all(-1)
    assert int((untouched & again).sum()) > 0
    assert int((tables_after(inner, 2) == before).all(-1).sum()) < int((untouched & again).sum())


@pytest.mark.parametrize("inner", BESIDE.values(), ids=BESIDE)
def test_a_penalty_of_no_weight_without_mixing_is_the_method_itself(inner: Method) -> None:
    penalised = tables_after(PLGC(inner=inner, mixing=False, beta=0.0))
    assert torch.allclose(penalised, tables_after(inner), rtol=0, atol=1e-9)


@pytest.mark.parametrize("inner", BESIDE.values(), ids=BESIDE)
def test_mixing_weighs_the_table_a_round_begins_with(inner: Method) -> None:
    client = PLGC(inner=inner, redundancy="none").client(World(2, 5))
    table = shared_table(inner.client(ANY_WORLD), "inner", "any")
    own, received = torch.rand(5, 2, dtype=torch.float64), torch.rand(5, 2, dtype=torch.float64)
    others = {name: torch.rand(5, 2, dtype=torch.float64) for name in client.params[table.name].tables_beside}
    outside = {f"{table.name}.outside": torch.tensor(3.0), f"{table.received}.outside": torch.tensor(1.0)}
    mixed = client.readings({**others, table.name: own, table.received: received, **outside})["merged"]
    share = (own.square().sum() + 3) / (own.square().sum() + 3 + received.square().sum() + 1)
    assert torch.allclose(mixed, share * own + (1 - share) * received)


@pytest.mark.parametrize("inner", BESIDE.values(), ids=BESIDE)
def test_what_cannot_be_held_back_is_not(inner: Method) -> None:
    with pytest.raises(SettingError, match=f"and {inner.name} looks at it in other ways too"):
        LateAggregation(inner=inner)


@pytest.mark.parametrize("plugin", [ElasticMerging, PLGC, LateAggregation])
def test_a_method_that_goes_on_from_its_own_table_is_refused(plugin: type[Plugin]) -> None:
    with pytest.raises(SettingError, match="lets a client go on from its own table, and fedem does so already"):
        plugin(inner=FedEM())


def test_squares_outside_tell_of_every_received_table() -> None:
    seen = federation(PLGC(inner=GPFedRec()), small_world())
    seen.round(1)
    clients = torch.arange(4)
    values, _ = seen.predicting(clients, torch.arange(3).expand(4, 3))
    for table, whole in (
        ("items", seen.clients.whole("items", clients)),
        ("guide", seen.server.mixtures["items"].sent(clients)),
        ("mean", seen.server.mixtures["items"].common().expand(4, -1, -1)),
    ):
        expected = whole[:, 3:].square().sum((1, 2))
        assert torch.allclose(values[f"{table}.outside"], expected, rtol=1e-9), table


def test_squares_outside_of_a_client_that_does_not_receive_are_of_its_own_table() -> None:
    one = federation(PLGC(inner=GPFedRec()), small_world())
    one.round(1)
    samples = one.work.samples(2, torch.arange(4))
    download = replace(one.server.download(2, samples.clients), receives=torch.tensor([True, False, True, False]))
    found = one.clients.open(samples, download).values
    for k in (1, 3):
        assert float(found["mean.outside"][k]) == pytest.approx(float(found["items.outside"][k]), abs=1e-9)
    assert float(found["mean.outside"][0]) != pytest.approx(float(found["items.outside"][0]), abs=1e-9)
