"""Proximal steps: what they do to values, and who may take them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ownview import Adam, FedRAP, Sgd
from ownview.seam.optimizers import soft_threshold_
from ownview.seam.training import Batch, Context, Step
from ownview.testing.worlds import federation, small_world

Numbers = st.floats(-4, 4, width=32)


@given(st.lists(st.tuples(Numbers, Numbers), min_size=1, max_size=5), st.floats(0, 3, width=32))
def test_soft_threshold_by_hand(rows: list[tuple[float, float]], threshold: float) -> None:
    """The first row has no threshold and must keep every bit."""
    values = torch.tensor(rows)
    soft_threshold_(values, torch.tensor([0.0] + [threshold] * (len(rows) - 1)))
    assert torch.equal(values[0], torch.tensor(rows[0]))
    for found, row in zip(values[1:].tolist(), rows[1:], strict=True):
        expected = [math.copysign(max(abs(x) - threshold, 0), x) for x in row]
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_the_threshold_falls_with_the_rate_and_spares_clients_without_a_batch(decay: float) -> None:
    """Two clients, one with two batches, one with one; no gradient at all, so only the threshold moves values."""
    values = torch.full((2, 1, 1), 1.0)
    mover = Sgd(0.2, step_decay=decay).start([values], [slice(0, 1), slice(1, 2)], 1)
    mover.step([torch.zeros(2, 1, 1)], 2, torch.tensor([[1.0], [2.0]]))
    assert values.flatten().tolist() == pytest.approx([0.8, 0.6])
    mover.step([torch.zeros(1, 1, 1)], 1, torch.tensor([[1.0]]))
    assert values.flatten().tolist() == pytest.approx([0.8 - 0.2 * decay, 0.6])


def _weight(batch: Batch, context: Context) -> torch.Tensor:
    return batch.counts


def test_only_an_optimiser_with_one_rate_shrinks() -> None:
    assert Step(("items",), Sgd(0.1), shrink=_weight).shrink is _weight
    with pytest.raises(ValueError, match="needs Sgd, which has one rate, not Adam"):
        Step(("items",), Adam(0.1), shrink=_weight)


def test_proximal_and_subgradient_part_only_where_a_value_would_cross_zero() -> None:
    settings = {"sparse": 0.5, "table_rate": 5.0, "local_epochs": 1}
    ends = {}
    for update in ("subgradient", "proximal"):
        one = federation(FedRAP.of({**settings, "update": update}), small_world())
        start = one.server.shared["common"].clone()
        one.round(1)
        ends[update] = one.server.shared["common"]
    far = start.abs() > 0.05  # no client takes a step of that length here
    assert 0.5 < float(far.double().mean()) < 1
    assert torch.allclose(ends["subgradient"][far], ends["proximal"][far], atol=1e-12, rtol=0)
    assert not torch.allclose(ends["subgradient"], ends["proximal"], atol=1e-12, rtol=0)
