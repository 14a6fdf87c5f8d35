"""Counts over several tensors, and which of them are not finite."""

from __future__ import annotations

import math

import pytest
import torch

from ownview.base import counts as module
from ownview.base.counts import counts, not_finite


def test_counts_are_those_of_every_tensor_by_itself_in_chunks_or_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"matrix": torch.tensor([[0.0, 1.0], [2.0, 0.0]]), "none": torch.zeros(0, 3), "one": torch.tensor(5.0)}
    expected = {"matrix": 2, "none": 0, "one": 1}
    assert counts(values, torch.count_nonzero) == expected
    monkeypatch.setattr(module, "_TOGETHER", 3)
    assert counts(values, torch.count_nonzero) == expected
    assert counts({}, torch.count_nonzero) == {}


def test_finite_numbers_are_finite_however_large_their_sum_is() -> None:
    assert not_finite({"large": torch.full((9,), 3e38), "whole": torch.tensor([2**40])}) is None
    assert not_finite({}) is None


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_the_first_that_is_not_finite_is_named(bad: float) -> None:
    some = {"fine": torch.ones(3), "bad": torch.tensor([1.0, bad, -bad]), "worse": torch.tensor([bad])}
    assert not_finite(some) == "bad"
