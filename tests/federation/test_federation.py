"""Blocks, personal tables, samples, and what happens when something goes wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FederationOptions, FedMF, LocalOnly, PFedRec
from ownview.base.errors import DeviceError, SettingError, TrainingError
from ownview.engine.blocks import Footprint, plan
from ownview.engine.machine import Machine, parse_bytes
from ownview.engine.samples import marked, touched
from ownview.engine.step_runs import Runs
from ownview.round.federation import Federation
from ownview.seam.roles import shared, table
from ownview.seam.training import Batch, Context, Params
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import changed_rows


def test_a_client_that_sits_out_keeps_the_table_of_its_own_round_underneath() -> None:
    split = small_world(num_items=300)
    one = federation(PFedRec(embedding_size=4), split, options=FederationOptions(clients="8"))
    tables = [one.server.shared["items"]]
    last: dict[int, int] = {}
    for number in range(1, 6):
        last |= dict.fromkeys(one.participants(number).tolist(), number)
        one.round(number)
        tables.append(one.server.shared["items"])
    assert len(set(last.values())) > 2, "the world must leave clients behind in different rounds"
    own = one.clients.tables["items"]
    for client in range(split.num_users):
        under = tables[last[client] - 1] if client in last else tables[0]
        values = own.take(torch.tensor([client]), torch.arange(split.num_items)[None])[0]
        untouched = ~changed_rows(own)[client]
        assert untouched.any()
        assert torch.equal(values[untouched], under[untouched])


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_touched_rows_name_every_sampled_item_once(lists: list[list[int]]) -> None:
    width = max(map(len, lists))
    sampled = torch.tensor([one + [7] * (width - len(one)) for one in lists])
    present = torch.tensor([[k < len(one) for k in range(width)] for one in lists])
    for form in (touched, marked):  # the second is how a GPU does it
        items, num_rows, rows = form(sampled, present, 10)
        for k, one in enumerate(lists):
            assert items[k, : num_rows[k]].tolist() == sorted(set(one))
            assert items[k][rows[k, : len(one)]].tolist() == one
        wider = form(sampled, present, 10, 12)
        assert wider[0].shape == (len(lists), 12)
        assert torch.equal(wider[0][:, : items.shape[1]], items)
        assert torch.equal(wider[1], num_rows)
        assert torch.equal(wider[2], rows)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=60), st.integers(1, 20), st.integers(10_000, 10**7))
@settings(max_examples=60)
def test_blocks_cover_everybody_once_within_budget(samples: list[int], most: int, budget: int) -> None:
    footprint = Footprint({"items": table(shared(8))}, num_items=100)
    sizes = torch.tensor(samples)
    blocks = plan(torch.arange(len(samples)), sizes, footprint, budget, most)
    assert sorted(torch.cat(blocks).tolist()) == list(range(len(samples)))
    for block in blocks:
        busiest = sizes[block].tolist()
        assert busiest == sorted(busiest, reverse=True)
        assert len(block) <= most
        assert len(block) == 1 or len(block) * footprint.of(busiest[0]) <= budget


def test_runs_shrink_to_those_with_batches_left() -> None:
    runs = Runs.of([3, 3, 2, 1])
    assert [runs.clients(runs.at(k)) for k in range(3)] == [slice(0, 4), slice(0, 3), slice(0, 2)]
    with pytest.raises(ValueError, match="busiest first"):
        Runs.of([1, 2])


@dataclass(frozen=True)
class Broken(FedMF):
    """Fails on clients with more than 60 touched rows or so; shapes may be looked at, values may not."""

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        if len(p["items"]) > 50:
            raise RuntimeError("too many rows for me")
        return super().loss(p, batch, context)


def test_the_loop_engine_names_the_client_that_failed() -> None:
    with pytest.raises(
        TrainingError, match=r"fedmf failed on client \d+ in round 1: too many rows for me \(inputs: user"
    ):
        federation(Broken(), small_world(), engine="loop").round(1)


def _rounds(one: Federation, last: int) -> None:
    for number in range(1, last + 1):
        one.round(number)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_divergence_names_round_client_and_parameter(engine: str) -> None:
    one = federation(PFedRec(learning_rate=1e200), small_world(), engine=engine)
    with pytest.raises(TrainingError, match=r"pfedrec diverged in round \d+: .* of client \d+ is not finite"):
        _rounds(one, 5)


def test_tables_that_do_not_fit_are_refused_before_they_are_made() -> None:
    split = small_world()
    place = Machine(torch.device("cpu"), memory=10_000)
    with pytest.raises(DeviceError, match=r"local-only's standing values need .* kB .*--memory"):
        Federation(LocalOnly(), split, split.training_items(), FederationOptions(), 0, place)


@pytest.mark.parametrize(
    ("text", "expected"), [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1000", 1000), ("1.5gb", 1.5e9)]
)
def test_memory_sizes(text: str, expected: float) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "lots", "-4GB", "0", "4XB"])
def test_bad_memory_sizes(text: str) -> None:
    with pytest.raises(SettingError, match="expected a size such as 4GB"):
        parse_bytes(text)


def test_a_round_nobody_takes_part_in_changes_nothing() -> None:
    one = federation(FedMF(embedding_size=4), small_world(), options=FederationOptions(clients="poisson:0.000001"))
    before = one.server.shared["items"].clone()
    report = one.round(1)
    assert (report.clients, report.loss) == (0, None)
    assert torch.equal(before, one.server.shared["items"])


def test_samples_follow_the_rules() -> None:
    split = small_world()
    one = federation(FedMF(negatives=3), split)
    clients = torch.arange(split.num_users)
    samples = one.work.samples(1, clients)
    for client in range(split.num_users):
        mine = samples.alone(client)
        items, labels = mine.items[mine.rows], mine.labels
        positives = split.train.of(client)
        assert items[labels == 1].tolist() == positives.tolist()
        negatives = items[labels == 0].reshape(-1, 3)
        assert all(len(set(row)) == 3 for row in negatives.tolist())
        assert not set(negatives.flatten().tolist()) & set(positives.tolist())
    assert not torch.equal(one.work.samples(2, clients).rows, samples.rows), "negatives are redrawn each round"
