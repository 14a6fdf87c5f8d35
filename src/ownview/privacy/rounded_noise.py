"""What it costs that devices add whole numbers: noise that is Gaussian before it is rounded, device by device.

T devices add round(G_i) each, G_i normal with standard deviation s (in steps). Compare their sum Y with

    Z = round(G + U_1 + ... + U_{T-1}),    G normal with variance T s^2, U_i uniform in (-1/2, 1/2).

Whole numbers plus Z are what rounding makes of the same numbers plus G + U: they follow from the Gaussian mechanism
with standard deviation s sqrt T, so its epsilon and delta hold for them. Y is next to the same. Its characteristic
function is (sum_m c_m)^T, and that of Z is sum_m c_m^T, where c_m(w) = exp(-s^2 (w + 2 pi m)^2 / 2)
sinc((w + 2 pi m) / 2) (Poisson's summation). For |w| <= pi and s >= 1 they differ by at most
T r (a + r)^(T-1) <= 8 T exp(-pi^2 s^2), with a and r the sizes of the term of m = 0 and of all others, sinc left out
(r (a + r) <= 6.1 exp(-pi^2 s^2), and (a + r)^(T-2) < 1.3 for T up to 40 million). So do the probabilities of every
whole number. |Y| and |Z| are within K = T / 2 + sqrt 2 pi s^2 sqrt T but for a chance of 2 exp(-pi^2 s^2) each, and the
total variation of Y and Z is at most

    tv = (8 T (K + 1/2) + 2) exp(-pi^2 s^2)    a number.

R rounds of D numbers are then (epsilon, delta + (1 + e^epsilon) R D tv)-private. Devices beyond T only add more.
"""

from __future__ import annotations

import math

LEAST_STEPS = 4.0
"""Of a device's standard deviation: from here on what rounding costs is below 1e-50 a number for a million devices."""


def total_variation(devices: int, steps: float) -> float:
    """tv; `steps` is s, from 1."""
    if steps < 1:
        raise ValueError(f"{steps} steps; the bound is proven from 1 on")
    reach = devices / 2 + math.sqrt(2) * math.pi * steps**2 * math.sqrt(devices)
    return (8 * devices * (reach + 0.5) + 2) * math.exp(-((math.pi * steps) ** 2))


def delta_of_rounding(epsilon: float, rounds: int, numbers: int, devices: int, steps: float) -> float:
    """(1 + e^epsilon) R D tv, at most 1.

    Args:
        epsilon: of all rounds.
        rounds: R.
        numbers: D, that a client sends in a round.
        devices: T.
        steps: s, of the round with the least noise.
    """
    apart = rounds * numbers * total_variation(devices, steps)
    if not apart:
        return 0.0  # below the smallest number there is
    return min(1.0, math.exp(min(math.log(apart) + epsilon, 1.0)) + apart)
