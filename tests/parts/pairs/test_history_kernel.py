"""The kernel of a history is known again, however its items stand; nothing else is taken for one."""

from __future__ import annotations

import math

import pytest
import torch

from ownview.parts.pairs.history_kernel import HistoryKernel


def _kernel(length: int, tau: float, seed: int) -> torch.Tensor:
    """[l, l] in float32, as a client makes it, with items in any order."""
    place = torch.randperm(length, generator=torch.Generator().manual_seed(seed)).float()
    return torch.exp(-(place[:, None] - place).abs() / tau)


@pytest.mark.parametrize("tau", [0.5, 2.0, 4.0, 16.0, 32.0, math.inf])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 10, 150, 700])
def test_every_history_passes(tau: float, length: int) -> None:
    assert HistoryKernel(tau)(_kernel(length, tau, length)) == ""


@pytest.mark.parametrize("length", [1, 2, 3, 40])
def test_one_other_number_is_seen(length: int) -> None:
    for tau in (4.0, 16.0, math.inf):
        sound = _kernel(length, tau, 1)
        for seed in range(10):
            a, b = torch.randint(length, (2,), generator=torch.Generator().manual_seed(seed)).tolist()
            wrong = sound.clone()
            wrong[a, b] = wrong[b, a] = wrong[a, b] + 0.01
            assert "no history has" in HistoryKernel(tau)(wrong)


def test_what_attackers_would_rather_send_is_no_history_s() -> None:
    """A column, a kernel of two histories at once, one that is scaled, a gap between places."""
    kernel = HistoryKernel(16.0)
    column = torch.eye(30)
    column[:, 3] = column[3] = 1
    gap = torch.tensor([0.0, 1.0, 5.0])
    apart = torch.exp(-(gap[:, None] - gap).abs() / 16)
    for wrong in (column, _kernel(30, 16, 1) + _kernel(30, 16, 2), 2 * _kernel(30, 16, 1), apart, torch.ones(3, 2)):
        assert kernel(wrong)
