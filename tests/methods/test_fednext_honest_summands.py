"""FedNext's sums are known to be a history's, whatever its sittings; and nothing else is taken for one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ownview import FedNext
from ownview.base.errors import MessageError
from ownview.messages.honest_uploads import require_honest
from ownview.messages.unwritten import Unwritten
from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Reporting
from ownview.seam.training import Batch, Context, World

ITEMS = 260
HOUR = 3600.0


def _reported(method: FedNext, length: int, order: str, seed: int) -> tuple[Upload, Reporting]:
    """What one client with a history of so many items sends, in float32."""
    random = torch.Generator().manual_seed(seed)
    work = method.client(World(8, ITEMS, order)).work
    assert isinstance(work, Reporting)
    gaps = torch.where(torch.rand(length, generator=random) < 0.2, 50 * HOUR, HOUR)
    times = gaps.cumsum(0)
    p = {
        "past.rows": torch.randperm(ITEMS, generator=random)[:length], "past.times": times,
        "past.mask": torch.ones(length), "past.now": times[-1] + HOUR, "told": torch.tensor(0.0),
    }  # fmt: skip
    nothing = torch.zeros(0)
    sent, _ = work.report(p, Batch(*[nothing] * 6), Context(1))
    sums = {name: _stacked(one) for name, one in Unwritten.of(sent).items()}
    empty = torch.zeros(1, 0, dtype=torch.long)
    shapes = {name: one.shape for name, one in work.sends.items()}
    return Upload(torch.tensor([3]), torch.zeros(1), empty, empty.bool(), sums=sums, shapes=shapes), work


def _stacked(one: Tensor | Patch | object) -> Patch:
    assert isinstance(one, Patch)
    return Patch(*(part[None] for part in one))


@pytest.mark.parametrize("order", ["times", "rows"])
@pytest.mark.parametrize("length", [1, 2, 3, 20, 150, 200, 250])
@pytest.mark.parametrize("scales", [(1.0, 8.0, 64.0), (0.5, 3.0, 20.0), (3.0,), (math.inf,)])
def test_every_history_passes(order: str, length: int, scales: tuple[float, ...]) -> None:
    for seed in range(3):
        require_honest(*_reported(FedNext(scales=scales), length, order, seed), {})


@pytest.mark.parametrize("name", ["pasts", "follows", "before", "after", "pairs", "recent"])
def test_one_other_number_is_seen(name: str) -> None:
    for seed in range(5):
        upload, work = _reported(FedNext(), 30, "times", seed)
        one = upload.sums[name]
        assert isinstance(one, Patch)
        values = one.values.clone()
        cell = values[0, 4, min(7, values.shape[2] - 1)]
        cell += 2 if name == "recent" else 0.2 * float(values.max())
        if work.sends[name].symmetric:
            values[0, 7, 4] = cell
        wrong = {**upload.sums, name: one._replace(values=values)}
        with pytest.raises(MessageError, match="no honest client sends that"):
            require_honest(Upload(**{**vars(upload), "sums": wrong}), work, {})


def test_sums_enlarged_or_of_other_items_are_seen() -> None:
    upload, work = _reported(FedNext(), 30, "times", 1)
    other, _ = _reported(FedNext(), 30, "times", 2)
    for sums in (
        upload.scaled(torch.tensor([3.0])).sums,
        {**upload.sums, "follows": other.sums["follows"]},
        {**upload.sums, "after": other.sums["after"]},
        {**upload.sums, "recent": other.sums["recent"]},
    ):
        with pytest.raises(MessageError, match="no honest client sends that"):
            require_honest(Upload(**{**vars(upload), "sums": sums}), work, {})
