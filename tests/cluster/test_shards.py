"""Shards cover all clients, and what they hold fits together again, in any process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview import FederationOptions, FedMF, PFedRec
from ownview.cluster.host import Host, Order, as_arrays, as_tensors
from ownview.cluster.shards import cut, shard_data
from ownview.federation.facts import OwnFacts
from ownview.federation.tables.packing import joined, parted
from ownview.seam.method import Federated
from ownview.testing.worlds import federation, small_world


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 8))
def test_shards_are_rows_of_clients_that_cover_all(samples: list[int], count: int) -> None:
    count = min(count, len(samples))
    shards = cut(torch.tensor(samples), count)
    assert [client for shard in shards for client in shard] == list(range(len(samples)))
    assert len(shards) == count
    assert all(len(shard) for shard in shards)


def test_shards_have_like_numbers_of_samples() -> None:
    samples = torch.randint(5, 200, (5000,), generator=torch.Generator().manual_seed(0))
    shares = [int(samples[shard.start : shard.stop].sum()) for shard in cut(samples, 7)]
    assert max(shares) - min(shares) <= 2 * 200


@settings(max_examples=20)
@given(st.integers(1, 6))
def test_what_clients_hold_is_parted_and_joined(count: int) -> None:
    one = federation(PFedRec(embedding_size=3), small_world(num_items=200), options=FederationOptions(clients="9"))
    for number in (1, 2, 3):
        one.round(number)
    packed = one.clients.pack()
    shards = cut(one.split.train.lengths, count)
    again = joined([parted(packed, shard) for shard in shards])
    assert again.keys() == packed.keys()
    assert all(torch.equal(value, again[name]) for name, value in packed.items())


@pytest.mark.parametrize("method", [FedMF(embedding_size=4), PFedRec(embedding_size=4)], ids=["shared", "kept"])
def test_hosts_do_what_one_process_does_and_go_on_from_files(method: Federated, tmp_path: Path) -> None:
    """Two hosts, one of them new in every round with nothing but its file."""
    whole = federation(method, small_world())
    places, files = cut(whole.split.train.lengths, 2), [tmp_path / "0", tmp_path / "1"]
    agreed = (method, whole.world, whole.options, whole.seed, whole.machine, whole.terms.noise)
    known = [
        shard_data(
            whole.split.train,
            whole.split.training_items(),
            whole.split.timeline,
            whole.split.data.users,
            OwnFacts.of(whole.split),
            here,
        )
        for here in places
    ]
    hosts = [Host(), Host()]
    for host, data, file in zip(hosts, known, files, strict=True):
        assert host.begin("one", agreed, data, file) == 0
    for number in (1, 2, 3):
        hosts[1] = Host()
        assert hosts[1].begin("one", agreed, known[1], files[1]) == number - 1
        shared = as_arrays(whole.server.download(number, torch.arange(0)).values)
        for array in shared.values():
            array.setflags(write=False)  # as it lies in common memory
        sums = []
        for host, here, file in zip(hosts, places, files, strict=True):
            answer, part = host.round("one", shared, Order(number, torch.arange(len(here)).numpy(), {}, None))
            assert sorted(answer.senders.tolist()) == list(here)
            host.save("one", number, file)
            sums.append(part)
        total = whole.server.begin(1)
        total.merge(as_tensors(hosts[0].add(*sums), torch.device("cpu")))
        mean = {name: value.clone() for name, value in total.mean().items()}  # type: ignore[union-attr]
        before = dict(whole.server.shared)
        whole.round(number)
        for name, value in mean.items():
            assert torch.allclose(before[name] + value, whole.server.shared[name], atol=1e-10), name
    held = joined([as_tensors(host.pack("one"), torch.device("cpu")) for host in hosts])
    for name, value in whole.clients.pack().items():
        assert torch.allclose(value.double(), held[name].double(), atol=1e-10), name
