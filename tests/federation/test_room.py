"""What clients will hold is reckoned before any of it is there, and room is asked for that much."""

from __future__ import annotations

import pytest
import torch
from benchmarks.worlds import crowd
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview import FedCIA, FederationOptions, PFedCLR, PFedRec
from ownview.base.errors import DeviceError
from ownview.base.randomness import derive
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.engine.machine import Machine
from ownview.engine.samples import draw_samples
from ownview.federation.clients import changed_rows, planned_bytes
from ownview.federation.tables.overlays import DenseTables, SparseTables, dense_bytes
from ownview.round.federation import Federation
from ownview.seam.method import Federated
from ownview.seam.training import World


def _made(method: Federated, num_items: int, memory: int = 10**9, num_clients: int = 20) -> Federation:
    """Every client has 18 items."""
    split, place = crowd(num_clients, num_items, 18), Machine(torch.device("cpu"), memory=memory)
    return Federation(method, split, split.train, FederationOptions(), 0, place)


def _planned(one: Federation) -> int:
    n, m = one.world.num_clients, one.world.num_items
    return planned_bytes(one.client.params, n, m, changed_rows(one.client, one.split.train, m), 4, one.machine.memory)


def _held(one: Federation) -> int:
    total = sum(value.nbytes for value in one.clients.own.values())
    for table in one.clients.tables.values():
        if isinstance(table, DenseTables):
            total += table.values.nbytes + table.changed.nbytes
        elif isinstance(table, SparseTables):
            places = (table.base_of, table.held.where, table.held.start, table.held.count)
            total += sum(one.nbytes for one in places)
            total += sum(part.untyped_storage().nbytes() for parts in table.held.parts.values() for part in parts)
    return total


@pytest.mark.parametrize(
    ("method", "num_items", "store"),
    [
        (PFedRec(embedding_size=16), 60, DenseTables),
        (PFedRec(embedding_size=16), 9000, SparseTables),
        (PFedRec(embedding_size=16, negatives=1), 9000, SparseTables),
        (PFedCLR(embedding_size=16), 9000, SparseTables),
        (FedCIA(fit_steps=1), 60, DenseTables),
    ],
    ids=["few-items", "many-items", "few-negatives", "two-tables", "whole-tables"],
)
def test_room_is_asked_for_as_much_as_clients_come_to_hold(method: Federated, num_items: int, store: type) -> None:
    one = _made(method, num_items)
    one.round(1)
    assert {type(table) for table in one.clients.tables.values()} == {store}
    assert _planned(one) == pytest.approx(_held(one), rel=0.05)


@given(st.integers(3, 30), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=20)
def test_changed_rows_are_those_that_samples_are_about(num_items: int, negatives: int, seed: int) -> None:
    """The mean over many clients with one to three positives, against what they draw."""
    positives = min(3, num_items - 2)
    negatives = min(negatives, num_items - positives)
    lists = [torch.arange(1 + k % positives) for k in range(600)]
    train = Ragged(torch.tensor([0, *(len(one) for one in lists)]).cumsum(0), torch.cat(lists))
    client = PFedRec(negatives=negatives).client(World(600, num_items))
    sampler = NegativeSampler(train, num_items, negatives)
    clients = torch.arange(600)
    drawn = draw_samples(derive(seed, "negatives"), clients, clients, train, sampler, torch.float32)
    assert changed_rows(client, train, num_items) == pytest.approx(float(drawn.num_rows.double().mean()), abs=1.3)


def test_what_does_not_fit_is_refused_before_it_is_there() -> None:
    """18 positives with four negatives each: 90 rows of 68 bytes, but for few drawn twice."""
    server, clients = 9000 * 16 * 4, 20 * 89 * (16 * 4 + 4)
    with pytest.raises(DeviceError, match="pfedrec's standing values need"):
        _made(PFedRec(embedding_size=16), 9000, server + clients)
    _made(PFedRec(embedding_size=16), 9000, server + int(1.1 * clients))


def test_several_tables_share_the_room_for_speed() -> None:
    """Two stores of which each would fit as the dense one, and not both."""
    needed = dense_bytes(20, 300, 16 * 4)
    for memory, store in ((needed + needed // 2, SparseTables), (3 * needed, DenseTables)):
        tables = _made(PFedCLR(variant="cf", embedding_size=16), 300, memory).clients.tables
        assert [type(table) for table in tables.values()] == [store, store]
