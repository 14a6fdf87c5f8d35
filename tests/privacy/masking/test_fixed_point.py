"""Numbers as whole steps modulo 2^32: bounded to the last step, right in the mean, and never too many for the sum."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.messages.upload import MODULUS
from ownview.privacy.masking.fixed_point import FixedPoint


def _vectors(norm: float, size: int, seed: int, *, spiky: bool) -> tuple[Tensor, Tensor]:
    """Two vectors of this norm and random numbers in [0, 1)."""
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(2, size, generator=random, dtype=torch.float64)
    if spiky:
        values[:, 1:] *= 1e-6
    values *= norm / values.norm(dim=1, keepdim=True)
    return values, torch.rand(2, size, generator=random, dtype=torch.float64)


@given(
    norm=st.floats(1e-6, 1e6),
    clients=st.integers(3, 100_000),
    size=st.integers(1, 2000),
    seed=st.integers(0, 2**31),
    spiky=st.booleans(),
)
def test_norms_are_bounded_after_rounding_and_sums_fit(
    norm: float, clients: int, size: int, seed: int, spiky: bool
) -> None:
    coding = FixedPoint.fitting(norm, clients)
    values, uniform = _vectors(norm, size, seed, spiky=spiky)
    steps = coding.steps(values, uniform)
    for own in steps:
        assert sum(int(step) ** 2 for step in own) <= coding.bound**2
    assert clients * int(steps.abs().max()) < 2**31
    back = coding.values(steps % MODULUS)
    assert torch.equal(back * coding.scale, steps.double())
    # A step by rounding; where the vector was shortened, by what rounding had lengthened it, and a step by cutting.
    assert float((back - values).abs().max()) * coding.scale <= 2 + math.sqrt(size) + 1e-9 * coding.bound


@given(seed=st.integers(0, 2**31), scale=st.floats(1e3, 1e30))
def test_vectors_that_nobody_has_clipped_are_bounded_all_the_same(seed: int, scale: float) -> None:
    coding = FixedPoint.fitting(1.0, 50)
    values, uniform = _vectors(scale, 40, seed, spiky=False)
    for own in coding.steps(values, uniform):
        assert sum(int(step) ** 2 for step in own) <= coding.bound**2


def test_rounding_is_right_in_the_mean() -> None:
    coding = FixedPoint(scale=4.0, bound=1e6)
    uniform = torch.rand(1, 40_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = coding.steps(torch.full((1, 40_000), 0.33, dtype=torch.float64), uniform).double().mean()
    assert float(mean) == pytest.approx(4 * 0.33, abs=0.01)  # one standard error is 0.0023


def test_zeros_stay_zeros() -> None:
    coding = FixedPoint.fitting(1.0, 10)
    assert not coding.steps(torch.zeros(1, 9, dtype=torch.float64), torch.full((1, 9), 0.999).double()).any()


@given(words=st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=1, max_size=5))
def test_negative_numbers_come_back_from_the_upper_half(words: list[int]) -> None:
    coding = FixedPoint(scale=2.0, bound=1.0)
    assert coding.values(torch.tensor(words) % MODULUS).tolist() == [word / 2 for word in words]


def test_a_sum_that_leaves_too_few_steps_is_refused() -> None:
    assert FixedPoint.fitting(1.0, 32_768).scale == 2**15
    assert FixedPoint.fitting(1.0, 1000, noise=0.0).scale == 2**21
    assert FixedPoint.fitting(1.0, 1000, noise=1000.0).scale == 2**17
    with pytest.raises(SettingError, match="10,000,000 clients modulo 2\\^32 leaves 128 steps"):
        FixedPoint.fitting(1.0, 10_000_000)
