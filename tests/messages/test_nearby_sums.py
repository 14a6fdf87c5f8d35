"""Summands of pairs that fade by distance: their sums, sizes and cells are those of the patches they stand for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ownview import Summand
from ownview.base.errors import SettingError
from ownview.messages import nearby_sums
from ownview.messages.sums import SumPartial, require_declared
from ownview.messages.unwritten import Unwritten, parts_of, written
from ownview.messages.upload import Upload, add_cells
from ownview.seam.client import Nearby, Patch

ITEMS = 60
DECLARED = {"x": Summand((ITEMS, ITEMS), "x", symmetric=True)}


def _stack(tau: float, clients: int = 12, length: int = 45, dtype: torch.dtype = torch.float64) -> Nearby:
    """Histories of 0 to `length` items, padding in front; the second one has nothing to send."""
    rows, mask = torch.zeros(clients, length, dtype=torch.long), torch.zeros(clients, length, dtype=dtype)
    for client in range(clients):
        count = 0 if client == 1 else length - 3 * client
        own = torch.randperm(ITEMS, generator=torch.Generator().manual_seed(client))[:count]
        rows[client, length - count :], mask[client, length - count :] = own, 1.0
    return Nearby(rows, mask, torch.full((clients,), tau, dtype=dtype))


def _upload(one: Nearby) -> Upload:
    count = len(one.rows)
    nothing = torch.zeros(count, 0, dtype=torch.long)
    shapes = {"x": (ITEMS, ITEMS)}
    return Upload(
        torch.arange(count), nothing.sum(1), nothing, nothing.bool(), sums=Unwritten.of({"x": one}), shapes=shapes
    )


def _by_hand(one: Nearby) -> Tensor:
    total = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    for rows, mask, tau in zip(one.rows.tolist(), one.mask, one.tau.tolist(), strict=True):
        own = [item for item, there in zip(rows, mask.tolist(), strict=True) if there]
        for a, left in enumerate(own):
            for b, right in enumerate(own):
                total[left, right] += math.exp(-abs(a - b) / tau)
    return total


@pytest.mark.parametrize("tau", [0.5, 4.0, 16.0, 1e3, math.inf])
@pytest.mark.parametrize("few", [1, 10**9], ids=["written out", "by factors"])
def test_a_sum_is_that_of_every_pair_by_hand(tau: float, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby_sums, "_FEW", few)
    total, one = SumPartial(DECLARED, torch.empty(0, dtype=torch.float64)), _stack(tau)
    for part in (slice(0, 5), slice(5, None)):
        total.add(_upload(one).chosen(part))
    assert torch.allclose(total.sums["x"], _by_hand(one), rtol=1e-12, atol=1e-12)
    assert torch.equal(total.sums["x"], total.sums["x"].T)


def test_what_waits_is_added_up_before_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ownview.messages.sums._CELLS", 1)
    total, one = SumPartial(DECLARED, torch.empty(0, dtype=torch.float64)), _stack(8.0)
    for _ in range(3):
        total.add(_upload(one))
        assert not total._waiting
    assert torch.allclose(total.sums["x"], 3 * _by_hand(one), rtol=1e-12, atol=1e-12)


def test_whoever_looks_sees_the_patch() -> None:
    upload, one = _upload(_stack(4.0)), _stack(4.0)
    patch = upload.sums["x"]
    assert isinstance(patch, Patch)
    total = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    add_cells(total, patch)
    assert torch.allclose(total, _by_hand(one), rtol=1e-12, atol=1e-12)
    alone = written(Nearby(one.rows[0], one.mask[0], one.tau[0]))
    assert torch.equal(alone.values, patch.values[0])
    assert isinstance(parts_of(upload.scaled(torch.full((12,), 2.0)).sums)["x"], Patch)
    assert torch.allclose(upload.norms(), replace(upload, sums={"x": patch}).norms())
    third = upload.one(3).sums["x"]
    assert isinstance(third, Patch)
    assert torch.equal(third.values[0], patch.values[3])


def test_items_that_do_not_exist_are_refused() -> None:
    one = _stack(4.0)
    with pytest.raises(SettingError, match="row 60"):
        require_declared(_upload(one._replace(rows=one.rows + 1)), DECLARED)
