"""Personal tables: the two stores hold the same, read each other's checkpoints, and keep no more than they must."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FederationOptions, LocalOnly, Method, PFedRec
from ownview.data.ragged import Ragged
from ownview.federation.histories import Histories
from ownview.federation.tables.overlays import (
    DenseTables,
    OverlayTables,
    SparseTables,
    dense_bytes,
    find,
    personal_tables,
    sparse_bytes,
    stored_bytes,
)
from ownview.federation.tables.packing import gathered
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import changed_rows

CLIENTS, ITEMS = 4, 7
STORES = pytest.mark.parametrize("store", [DenseTables, SparseTables])
CUDA = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available")]
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
EVERYBODY = torch.arange(CLIENTS)
EVERY_ROW = torch.arange(ITEMS).expand(CLIENTS, -1)


@dataclass(frozen=True)
class PutWhole:
    clients: tuple[int, ...]

    def tables(self, shape: tuple[int, ...], seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(len(self.clients), ITEMS, *shape, generator=generator)


@dataclass(frozen=True)
class Put:
    clients: tuple[int, ...]
    items: tuple[tuple[int, ...], ...]
    widest: int

    def arguments(self, shape: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As training writes: rows end to end, and padding that repeats item 0."""
        padded = [(*own, *[0] * (self.widest - len(own))) for own in self.items]
        real = [[k < len(own) for k in range(self.widest)] for own in self.items]
        size = (len(self.clients), self.widest)
        rows = torch.randn(*size, *shape, generator=torch.Generator().manual_seed(seed))
        items = torch.tensor(padded, dtype=torch.long).reshape(size)
        return (
            torch.tensor(self.clients, dtype=torch.long),
            items,
            torch.tensor(real, dtype=torch.bool).reshape(size),
            rows,
        )


@dataclass(frozen=True)
class Restart:
    clients: tuple[int, ...]


@st.composite
def puts(draw: st.DrawFn) -> Put:
    clients = draw(st.lists(st.integers(0, CLIENTS - 1), unique=True).map(tuple))
    one = st.lists(st.integers(0, ITEMS - 1), unique=True).map(tuple)
    items = tuple(draw(one) for _ in clients)
    return Put(clients, items, max(map(len, items), default=0) + draw(st.integers(0, 2)))


some_clients = st.lists(st.integers(0, CLIENTS - 1), unique=True).map(tuple)
histories = st.lists(puts() | some_clients.map(Restart) | some_clients.map(PutWhole), max_size=8)
shapes = st.sampled_from([(), (3,), (2, 2)])

Event = Put | PutWhole | Restart


def _base(shape: tuple[int, ...], number: int) -> Tensor:
    return torch.randn(ITEMS, *shape, generator=torch.Generator().manual_seed(1000 + number))


def _follow(tables: OverlayTables, history: list[Event], shape: tuple[int, ...]) -> None:
    device = tables.base_of.device
    for number, event in enumerate(history, start=1):
        if isinstance(event, Put):
            tables.put(*(one.to(device) for one in event.arguments(shape, number)))
            continue
        clients = torch.tensor(event.clients, dtype=torch.long, device=device)
        if isinstance(event, PutWhole):
            tables.put_whole(clients, event.tables(shape, number).to(device))
        else:
            tables.restart(clients, _base(shape, number).to(device), number)


def _by_hand(history: list[Event], shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The whole tables [n, m, ...], and [n, m] which of their rows are the clients' own."""
    whole, changed = (
        _base(shape, 0).repeat(CLIENTS, 1, *[1] * len(shape)),
        torch.zeros(CLIENTS, ITEMS, dtype=torch.bool),
    )
    for number, event in enumerate(history, start=1):
        for k, client in enumerate(event.clients):
            if isinstance(event, Restart):
                whole[client], changed[client] = _base(shape, number), False
                continue
            if isinstance(event, PutWhole):
                whole[client], changed[client] = event.tables(shape, number)[k], True
                continue
            rows = event.arguments(shape, number)[3]
            for place, item in enumerate(event.items[k]):
                whole[client, item], changed[client, item] = rows[k, place], True
    return whole, changed


def _assert_holds(tables: OverlayTables, whole: Tensor, changed: Tensor) -> None:
    device = tables.base_of.device
    assert torch.equal(tables.take(EVERYBODY.to(device), EVERY_ROW.to(device)).cpu(), whole)
    assert torch.equal(changed_rows(tables), changed)


def _fresh(store: type[OverlayTables], shape: tuple[int, ...], device: str) -> OverlayTables:
    return store(CLIENTS, _base(shape, 0).to(device))


@STORES
@DEVICES
@given(history=histories, shape=shapes, seed=st.integers(0, 99))
@settings(max_examples=80)
def test_a_store_gives_back_what_was_put(
    store: type[OverlayTables], device: str, history: list[Event], shape: tuple[int, ...], seed: int
) -> None:
    tables = _fresh(store, shape, device)
    _follow(tables, history, shape)
    whole, changed = _by_hand(history, shape)
    _assert_holds(tables, whole, changed)
    drawn = torch.Generator().manual_seed(seed)
    clients, items = torch.randperm(CLIENTS, generator=drawn)[:2], torch.randint(ITEMS, (2, 3), generator=drawn)
    rows = tables.take(clients.to(device), items.to(device))
    assert torch.equal(rows.cpu(), whole[clients[:, None], items])
    every_row = tables.whole(clients.to(device))
    assert torch.equal(every_row.cpu(), whole[clients])
    for taken in (rows, every_row):
        taken.zero_()  # what was taken may be changed
    _assert_holds(tables, whole, changed)


@DEVICES
@STORES
@given(history=histories, later=histories, shape=shapes)
@settings(max_examples=40)
def test_what_is_gathered_to_be_packed_is_changed_by_nothing_that_comes_later(
    device: str, store: type[OverlayTables], history: list[Event], later: list[Event], shape: tuple[int, ...]
) -> None:
    tables = _fresh(store, shape, device)
    _follow(tables, history, shape)
    packed = {name: value for name, value in tables.pack().items() if gathered(f"table.rows.{name}")}
    before = {name: value.clone() for name, value in packed.items()}
    assert set(packed) == {"counts", "items", "values", "numbers", "bases"}
    _follow(tables, later, shape)
    for name, value in packed.items():
        assert torch.equal(value, before[name]), name


@DEVICES
@given(history=histories, later=histories, shape=shapes)
@settings(max_examples=80)
def test_stores_pack_the_same_and_read_each_other(
    device: str, history: list[Event], later: list[Event], shape: tuple[int, ...]
) -> None:
    packed = {}
    for store in (DenseTables, SparseTables):
        tables = _fresh(store, shape, device)
        _follow(tables, history, shape)
        packed[store] = {name: value.clone() for name, value in tables.pack().items()}
    for name, value in packed[DenseTables].items():
        assert torch.equal(value, packed[SparseTables][name]), name
        assert value.dtype == packed[SparseTables][name].dtype, name
    whole, changed = _by_hand(history, shape)
    for written, read in ((DenseTables, SparseTables), (SparseTables, DenseTables)):
        restored = _fresh(read, shape, device)
        _follow(restored, later, shape)  # what stood there before is gone
        restored.unpack(packed[written])
        _assert_holds(restored, whole, changed)
        _follow(restored, later, shape)
        for name, value in packed[read].items():
            assert torch.equal(value, packed[written][name]), "a restored store leaves the checkpoint as it was"


@STORES
def test_checkpoints_with_a_mask_are_read(store: type[OverlayTables]) -> None:
    tables = store(2, torch.zeros(3, 1))
    tables.unpack(
        {
            "changed": torch.tensor([False, True, False, True, False, True, False]),
            "values": torch.tensor([[1.0], [2.0], [3.0]]),
            "base_of": torch.tensor([0, 4]),
            "numbers": torch.tensor([0, 4]),
            "bases": torch.tensor([[[7.0]] * 3, [[8.0]] * 3]),
        }
    )
    whole = tables.take(torch.tensor([0, 1]), torch.arange(3).expand(2, -1))
    assert whole[..., 0].tolist() == [[7.0, 1.0, 7.0], [2.0, 8.0, 3.0]]
    assert changed_rows(tables)[1].tolist() == [True, False, True]


@STORES
def test_bases_nobody_stands_on_are_forgotten(store: type[OverlayTables]) -> None:
    tables = store(2, torch.zeros(3, 1))
    tables.restart(torch.tensor([0, 1]), torch.ones(3, 1), 1)
    tables.restart(torch.tensor([0]), torch.full((3, 1), 2.0), 2)
    assert set(tables.bases) == {1, 2}
    tables.restart(torch.tensor([1]), torch.full((3, 1), 3.0), 3)
    assert set(tables.bases) == {2, 3}
    assert tables.take(torch.tensor([0, 1]), torch.tensor([[0], [0]])).flatten().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("method", [PFedRec(embedding_size=4), LocalOnly(embedding_size=4)], ids=["kept", "private"])
def test_training_is_the_same_bit_for_bit_in_both_stores(method: Method) -> None:
    split, ends = small_world(num_items=300), []
    for store in (DenseTables, SparseTables):
        one = federation(method, split, options=FederationOptions(clients="8"), block_clients=3)
        for name, table in one.clients.tables.items():
            assert isinstance(table, OverlayTables)
            one.clients.tables[name] = store(split.num_users, table.bases[0])
        for number in range(1, 5):
            one.round(number)
        ends.append(one.pack())
    assert any(name.startswith("table.") for name in ends[0]), "the method must have personal tables"
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())


def _stored_bytes(tables: SparseTables) -> int:
    return sum(part.untyped_storage().nbytes() for held in tables.held.parts.values() for part in held)


def test_a_sparse_store_holds_changed_rows_and_nothing_else() -> None:
    tables = SparseTables(50, torch.zeros(1000, 16))
    clients, items = torch.arange(0, 50, 2), torch.arange(0, 1000, 10).expand(25, -1)
    for _ in range(2):  # the second time the same rows
        tables.put(clients, items, torch.ones_like(items, dtype=torch.bool), torch.ones(25, 100, 16))
    assert tables.held.count.nonzero()[:, 0].tolist() == clients.tolist()
    assert _stored_bytes(tables) == 25 * 100 * (4 + 16 * 4)
    assert sparse_bytes(25, 1000, 16 * 4, 100) == _stored_bytes(tables) + 25 * 24
    tables.restart(clients, torch.ones(1000, 16), 1)
    assert not tables.held.parts


def test_a_sparse_store_that_others_write_to_each_time_gets_rid_of_dead_rows() -> None:
    """Forty cohorts drawn anew: what is stored stays within a quarter of what counts, in few segments."""
    drawn = torch.Generator().manual_seed(0)
    tables, real = SparseTables(600, torch.zeros(900, 2)), torch.ones(60, 30, dtype=torch.bool)
    whole = torch.zeros(600, 900, 2)
    for number in range(1, 41):
        clients = torch.randperm(600, generator=drawn)[:60]
        items = torch.stack([torch.randperm(900, generator=drawn)[:30] for _ in clients])
        tables.restart(clients[:30], torch.zeros(900, 2), number)
        whole[clients[:30]] = 0
        tables.put(clients, items, real, torch.full((60, 30, 2), float(number)))
        whole[clients[:, None], items] = float(number)
        alive = int(tables.held.count.sum())
        assert alive == int((whole[..., 0] != 0).sum())
        assert tables.held.stored_rows <= 1.25 * alive
        assert _stored_bytes(tables) == tables.held.stored_rows * (4 + 8)
    assert torch.equal(tables.take(torch.arange(600), torch.arange(900).expand(600, -1)), whole)
    assert len(tables.held.parts) <= 40


@pytest.mark.parametrize(
    ("num_clients", "num_items", "rows", "expected"),
    [
        (943, 1682, 106, DenseTables),  # as MovieLens-100K
        (1000, 100_000, 60, SparseTables),  # few rows of many
        (10**6, 100_000, 250, SparseTables),  # cannot be allocated densely
    ],
)
def test_the_store_follows_the_size(num_clients: int, num_items: int, rows: int, expected: type) -> None:
    tables = personal_tables(num_clients, torch.zeros(num_items, 16), rows)
    assert type(tables) is expected
    clients, items = torch.tensor([num_clients - 1]), torch.tensor([[0, num_items - 1]])
    tables.put(clients, items, torch.tensor([[False, True]]), torch.ones(1, 2, 16))
    assert tables.take(clients, items)[0, :, 0].tolist() == [0.0, 1.0]


def test_the_dense_store_keeps_to_its_budget_unless_it_is_smaller() -> None:
    base = torch.zeros(1000, 16)
    needed = dense_bytes(10, 1000, 64)
    assert needed == 10 * 1000 * 65
    assert type(personal_tables(10, base, 500, needed)) is DenseTables
    assert type(personal_tables(10, base, 500, needed - 1)) is SparseTables
    assert type(personal_tables(10, base, 1000, 0)) is DenseTables
    assert stored_bytes(10, 1000, 64, 500, needed) == needed
    assert stored_bytes(10, 1000, 64, 500, needed - 1) == sparse_bytes(10, 1000, 64, 500) < needed
    assert stored_bytes(10, 1000, 64, 1000, 0) == needed


@given(st.sets(st.integers(0, 199)), st.lists(st.integers(0, 199), max_size=40))
@settings(max_examples=100)
def test_places_are_found_by_search_and_by_table(listed: set[int], asked: list[int]) -> None:
    ordered = sorted(listed)
    expected = [ordered.index(key) if key in listed else -1 for key in asked]
    for span in (200, 100_000):  # so small that a table is made, so large that keys are searched
        place = find(torch.tensor(ordered, dtype=torch.long), torch.tensor(asked, dtype=torch.long), span)
        assert place.tolist() == expected


@given(st.lists(st.lists(st.integers(0, 39), max_size=6), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 9))
@settings(max_examples=80)
def test_histories_say_what_is_in_training(lists: list[list[int]], width: int, seed: int) -> None:
    """Lists in any order, empty ones and repeated items; some rows, and all of them."""
    users = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    train = Ragged.from_pairs(users, np.array([item for one in lists for item in one], dtype=np.int64), len(lists))
    tables = Histories(train, 400, torch.float64)
    drawn = torch.Generator().manual_seed(seed)
    clients = torch.randperm(len(lists), generator=drawn)
    some = torch.randint(40, (len(lists), width), generator=drawn)
    for items in (some, torch.arange(400).expand(len(lists), -1)):
        expected = [
            [float(item in lists[u]) for item in row] for u, row in zip(clients.tolist(), items.tolist(), strict=True)
        ]
        found = tables.take(clients, items)
        assert found.dtype == torch.float64
        assert found.tolist() == expected
    assert torch.equal(tables.take(clients, None), found), "without items, of all of them"
