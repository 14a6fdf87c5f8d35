"""Bytes on the wire: messages come back as they were, and are as long as rounds say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from ownview import FedMF, FedRAP, LocalOnly
from ownview.federation.round import Federation
from ownview.federation.wire import Traffic, decode, dense_size, encode, message_size, sparsity
from ownview.seam.training import Context
from ownview.testing import federation, small_world

_OFTEN_ZERO = st.one_of(st.just(0.0), st.just(0.0), st.floats(-1e6, 1e6, width=32))


@st.composite
def tables(draw: st.DrawFn) -> Tensor:
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return torch.from_numpy(np.asarray(draw(arrays.arrays(dtype, shape, elements=_OFTEN_ZERO, fill=st.just(0.0)))))


@given(tables())
def test_messages_come_back_and_are_as_long_as_accounted(table: Tensor) -> None:
    message = encode(table)
    back = decode(message)
    assert back.dtype == table.dtype
    assert torch.equal(back, table)
    assert len(message) == int(message_size(table, torch.count_nonzero(table))) <= dense_size(table)


@pytest.mark.parametrize(("nonzero", "expected"), [(0, 12), (1, 20), (24, 12 + 24 * 8), (25, 212), (50, 212)])
def test_sizes_by_hand(nonzero: int, expected: int) -> None:
    """10 by 5 values of 4 bytes: 12 bytes of header, then 200 bytes, or 8 for each value that is not 0."""
    table = torch.zeros(10, 5)
    table.view(-1)[:nonzero] = 2.5
    assert len(encode(table)) == expected


def test_sparsity_by_hand() -> None:
    found = sparsity({"items": torch.tensor([[0.0, -0.0, 0.0005, -0.0005], [0.001, -0.1, 3.0, 4.0]])})
    assert found == {"items": {"zero": 0.25, "below_0.001": 0.5}}


def _uploads(one: Federation, number: int) -> list[Tensor]:
    """The whole shared table of every client at the end of a round, from training that leaves the state alone."""
    tables = []
    for block in one.blocks(one.participants(number)):
        samples = one.samples(number, block)
        received = one.state.receive(samples).values
        one.engine.train(received, samples, Context(number), one.state.row_names)
        for k in range(len(block)):
            rows = int(samples.num_rows[k])
            table = one.state.shared["common"].clone()
            table[samples.items[k, :rows]] = received["common"][k, :rows]
            tables.append(table)
    return tables


@pytest.mark.parametrize("block_clients", [3, 128])
def test_a_round_charges_the_messages_its_clients_would_send(block_clients: int) -> None:
    method = FedRAP(update="proximal", sparse=30.0, table_rate=20.0, embedding_size=4, local_epochs=2)
    one = federation(method, small_world(), dtype=torch.float32, block_clients=block_clients)
    one.state.shared["common"][:40] = 0
    messages = [encode(table) for table in _uploads(one, 1)]
    down = len(encode(one.state.shared["common"]))
    report = one.round(1)
    assert len({len(message) for message in messages}) > 5
    assert report.bytes_up == round(sum(map(len, messages)) / len(messages)) < report.bytes_dense
    assert report.bytes_down == down
    assert report.bytes_dense == dense_size(one.state.shared["common"]) == 12 + 60 * 4 * 4
    zero = float((one.state.shared["common"] == 0).double().mean())
    assert report.sparsity["common"]["zero"] == pytest.approx(zero, abs=1e-12)
    assert zero > 0


def test_thresholding_keeps_a_table_sparse_that_starts_empty() -> None:
    """The mean over clients leaves 0 only what was 0 and stayed 0 at every client; from a dense start nothing is."""
    ends = {}
    for scale in (0.0, 1.0):
        method = FedRAP(update="proximal", sparse=2.0, common_scale=scale, curriculum="fixed", table_rate=20.0)
        one = federation(method, small_world(), dtype=torch.float32)
        ends[scale] = [one.round(number) for number in (1, 2, 3)][-1]
    assert 0.3 < ends[0.0].sparsity["common"]["zero"] < 1
    assert ends[0.0].bytes_up < 0.9 * ends[0.0].bytes_dense
    assert ends[1.0].sparsity["common"]["zero"] < 0.01


def test_tables_without_zeros_are_dense_and_not_looked_at() -> None:
    one = federation(FedMF(embedding_size=4), small_world(), dtype=torch.float32)
    assert Traffic(one.state.shared, one.shrunk).nonzero == {}
    report = one.round(1)
    assert report.bytes_up == report.bytes_down == report.bytes_dense == 12 + 60 * 4 * 4


def test_who_shares_nothing_sends_nothing() -> None:
    report = federation(LocalOnly(), small_world()).round(1)
    assert report.bytes_up == report.bytes_down == report.bytes_dense == 0
    assert report.sparsity == {}
