"""Noise that devices round: how far the sum of theirs is from what the accountant knows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from ownview.privacy.rounded_noise import LEAST_STEPS, delta_of_rounding, total_variation

Chances = npt.NDArray[np.float64]
_REACH = 60


def _of_sum(devices: int, steps: float) -> Chances:
    """Chances of the whole numbers from -60 to 60 as the sum of rounded normal numbers, one by one."""
    edges = np.arange(-_REACH, _REACH + 2) - 0.5
    alone = np.diff(norm.cdf(edges, scale=steps))
    total = alone
    for _ in range(devices - 1):
        total = np.convolve(total, alone, mode="same")
    return total


def _of_rounded_sum(devices: int, steps: float) -> Chances:
    """The same of round(normal of variance devices steps^2, plus devices - 1 numbers uniform in (-1/2, 1/2)).

    Rounding is one uniform number more: the density is the inverse Fourier transform of
    (exp(-s^2 w^2 / 2) sinc(w / 2))^devices, which is found by adding up, and taken at whole numbers.
    """
    farthest = 10 / (steps * math.sqrt(devices))
    waves = np.linspace(-farthest, farthest, 8001)
    transform = (np.exp(-((steps * waves) ** 2) / 2) * np.sinc(waves / (2 * np.pi))) ** devices
    values = np.arange(-_REACH, _REACH + 1)
    return np.cos(values[:, None] * waves) @ transform * (waves[1] - waves[0]) / (2 * np.pi)


@pytest.mark.parametrize("steps", [1.0, 1.2, 1.5])
@pytest.mark.parametrize("devices", [2, 3, 5])
def test_the_sum_of_rounded_noise_is_next_to_rounded_gaussian_noise(devices: int, steps: float) -> None:
    """So little noise that the difference can be seen: it is there, and within the bound."""
    apart = np.abs(_of_sum(devices, steps) - _of_rounded_sum(devices, steps))
    assert 1e-14 < float(apart.max()) <= 8 * devices * math.exp(-((math.pi * steps) ** 2))
    assert 0.5 * float(apart.sum()) <= total_variation(devices, steps)
    assert float(_of_rounded_sum(devices, steps).sum()) == pytest.approx(1)


def test_rounding_costs_nothing_worth_naming() -> None:
    assert delta_of_rounding(8.0, 100, 10**6, 10**6, LEAST_STEPS) < 1e-40
    assert delta_of_rounding(8.0, 100, 10**6, 10**6, 1000.0) == 0.0
    assert 0 < delta_of_rounding(1.0, 1, 1, 2, 2.0) < 1e-12
    assert delta_of_rounding(1e4, 1, 1, 2, 2.0) == 1.0
    with pytest.raises(ValueError, match="from 1 on"):
        total_variation(5, 0.9)


def test_devices_that_stay_away_leave_less_noise_and_those_beyond_the_threshold_more() -> None:
    """Variance of the sum of n rounded normal numbers: n (s^2 + 1/12)."""
    values = np.arange(-_REACH, _REACH + 1)
    for devices in (2, 4):
        chances = _of_sum(devices, 3.0)
        assert float((chances * values**2).sum()) == pytest.approx(devices * (9 + 1 / 12), rel=1e-6)
