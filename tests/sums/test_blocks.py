"""Contributions in whole steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview.messages.unwritten import written
from ownview.seam.client import Nearby
from ownview.sums.blocks import block_of


@pytest.mark.parametrize("tau", [3.0, 16.0, math.inf])
@pytest.mark.parametrize("padding", [0, 2])
def test_pairs_by_distance_have_the_steps_of_the_patch_they_stand_for(tau: float, padding: int) -> None:
    rows = torch.from_numpy(np.random.default_rng(0).permutation(40)[:9])
    mask = torch.ones(9, dtype=torch.float64)
    mask[:padding] = 0
    pairs = Nearby(rows, mask, torch.tensor(tau, dtype=torch.float64))
    found, expected = block_of(pairs), block_of(written(pairs))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert found.steps.dtype == np.int64
    assert found.steps[0, 0] == (2**36 if not padding or found.rows[0] not in rows[:padding] else 0)
