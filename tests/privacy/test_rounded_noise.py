"""Noise that devices round: how far the sum of theirs is from what the accountant knows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from ownview.privacy.rounded_noise import LEAST_STEPS, chance_apart, delta_of_rounding, total_variation

Chances = npt.NDArray[np.float64]
_REACH = 60


def _of_sum(devices: int, steps: float) -> Chances:
    """Chances of the whole numbers from -60 to 60 as the sum of rounded normal numbers, one by one."""
    edges = np.arange(-_REACH, _REACH + 2) - 0.5
    alone = np.diff(norm.cdf(edges, scale=steps))
    total: Chances = alone
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
    chances: Chances = np.cos(values[:, None] * waves) @ transform * (waves[1] - waves[0]) / (2 * np.pi)
    return chances


@pytest.mark.parametrize("steps", [1.0, 1.2, 1.5])
@pytest.mark.parametrize("devices", [2, 3, 5])
def test_the_sum_of_rounded_noise_is_next_to_rounded_gaussian_noise(devices: int, steps: float) -> None:
    """So little noise that the difference can be seen: it is there, and within the bound."""
    apart = np.abs(_of_sum(devices, steps) - _of_rounded_sum(devices, steps))
    assert 1e-14 < float(apart.max()) <= chance_apart(devices, steps)
    assert 0.5 * float(apart.sum()) <= total_variation(devices, steps)
    assert float(_of_rounded_sum(devices, steps).sum()) == pytest.approx(1)


def _beyond(chances: Chances, moved: Chances, epsilon: float) -> float:
    """Delta at this epsilon, exactly: what of one distribution lies above e^epsilon times the other."""
    return float(np.maximum(chances - math.exp(epsilon) * moved, 0).sum())


def _of_gaussian(mu: float, epsilon: float) -> float:
    """The same of the Gaussian mechanism, mu the move over the standard deviation (Balle and Wang 2018, theorem 8)."""
    ratio = epsilon / mu
    return float(norm.cdf(mu / 2 - ratio) - math.exp(epsilon) * norm.cdf(-mu / 2 - ratio))


@pytest.mark.parametrize("steps", [1.0, 1.5])
@pytest.mark.parametrize("devices", [1, 2, 5])
@pytest.mark.parametrize("move", [1, 3])
def test_delta_counted_out_is_within_what_is_stated(devices: int, steps: float, move: int) -> None:
    """One number, and two of one round that move together: every whole number that may come out is looked at."""
    chances = _of_sum(devices, steps)
    moved = np.roll(chances, move)
    pair, moved_pair = np.outer(chances, chances), np.outer(moved, moved)
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for numbers, one, other in ((1, chances, moved), (2, pair, moved_pair)):
            gaussian = _of_gaussian(move * math.sqrt(numbers) / (steps * math.sqrt(devices)), epsilon)
            stated = gaussian + delta_of_rounding(epsilon, 1, numbers, devices, steps)
            assert 0 < _beyond(one, other, epsilon) <= stated + 1e-13


def test_less_noise_than_is_claimed_would_be_noticed() -> None:
    """The counted delta is no bound that anything passes: with half the noise it is far above."""
    chances = _of_sum(2, 1.5)
    stated = _of_gaussian(3 / (3 * math.sqrt(2)), 1.0) + delta_of_rounding(1.0, 1, 1, 2, 3.0)
    assert _beyond(chances, np.roll(chances, 3), 1.0) > 3 * stated


@pytest.mark.parametrize("steps", [1.0, 1.3, 2.0])
def test_the_steps_of_the_proof(steps: float) -> None:
    """Step 3 on a fine grid of w in [0, pi]: r <= 2.01 e_(-1), r (a + r) <= 6.1 E, a + r <= 1 + 2.01 E^2."""
    waves = np.linspace(0, np.pi, 2001)[:, None]
    every = {m: np.exp(-((steps * (waves + 2 * np.pi * m)) ** 2) / 2) for m in range(-5, 6)}
    own, rest = every[0], sum(term for m, term in every.items() if m)
    bound = math.exp(-((np.pi * steps) ** 2))
    assert np.all(rest <= 2.01 * every[-1])
    assert float((rest * (own + rest)).max()) <= 6.1 * bound
    assert float((own + rest).max()) <= (1 + 2.01 * bound**2) * (1 + 1e-15)


def test_rounding_costs_nothing_worth_naming() -> None:
    assert delta_of_rounding(8.0, 100, 10**6, 10**6, LEAST_STEPS) < 1e-40
    assert delta_of_rounding(8.0, 100, 10**6, 10**6, 1000.0) == 0.0
    assert 0 < delta_of_rounding(1.0, 1, 1, 2, 2.0) < 1e-12
    assert delta_of_rounding(1e4, 1, 1, 2, 2.0) == 1.0
    assert total_variation(10**12, 1.0) == 1.0, "so many devices with so little noise: nothing is claimed"
    with pytest.raises(ValueError, match="from 1 on"):
        total_variation(5, 0.9)


def test_devices_that_stay_away_leave_less_noise_and_those_beyond_the_threshold_more() -> None:
    """Variance of the sum of n rounded normal numbers: n (s^2 + 1/12)."""
    values = np.arange(-_REACH, _REACH + 1)
    for devices in (2, 4):
        chances = _of_sum(devices, 3.0)
        assert float((chances * values**2).sum()) == pytest.approx(devices * (9 + 1 / 12), rel=1e-6)
