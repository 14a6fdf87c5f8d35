"""The privacy cost of rounding Gaussian noise to whole numbers device by device.

T devices add round(G_i) each, G_i normal with standard deviation s >= 1, in steps. The accountant knows Gaussian noise
of variance T s^2. The sum Y of the rounded numbers is not that, but what it costs is bounded. With E = exp(-pi^2 s^2):

1. A yardstick that the accountant covers. Z = round(G + U_1 + ... + U_(T-1)), G normal with variance T s^2, U_i uniform
   in (-1/2, 1/2). For a whole number x, x + Z = round(x + G + U_1 + ...): made of x + G alone. So the epsilon and delta
   of the Gaussian mechanism with standard deviation s sqrt T hold for x + Z. Now Y is compared with Z.

2. Their transforms (characteristic functions). round(G_i) = k has the density of G_i + U at k, U uniform as above; that
   density has the transform f(w) = exp(-s^2 w^2 / 2) sin(w / 2) / (w / 2). By Poisson's summation round(G_i) has
   sum_m c_m, c_m = f(w + 2 pi m), and Y has (sum_m c_m)^T. Z = k has the density of G + U_1 + ... + U_T at k, whose
   transform is f^T: Z has sum_m c_m^T.

3. How far the transforms are apart, for |w| <= pi, which is all of a period. Multiplied out, their difference is the
   products of T factors c_m that are not all the same one. Let e_m = exp(-s^2 (w + 2 pi m)^2 / 2) >= |c_m|, a = e_0 and
   r the sum of all other e_m. These products add up to at most (a + r)^T - a^T <= T r (a + r)^(T-1).
   - Take w >= 0; the other side is its mirror image. The largest term of r is e_(-1), e_1 is no larger, and all others
     together are below 1e-16 of e_(-1): r <= 2.01 e_(-1). Also a e_(-1) = exp(-s^2 (pi^2 + (pi - w)^2)) <= E, and
     e_(-1)^2 <= E. Hence r (a + r) <= (2.01 + 2.01^2) E <= 6.1 E.
   - a + r is largest at w = 0 (it is a sum of cosines of w with weights above 0, by Poisson's summation again), where
     it is at most 1 + 2.01 E^2: (a + r)^(T-2) <= g = exp(2.01 T E^2). From s = 4 on g is 1 for any T that exists.
   So they differ by at most 6.1 g T E. (For T = 1 they do not differ at all.)

4. The chance of a whole number is the mean over |w| <= pi of the transform times a number of size 1: the chances that
   Y and Z are k differ by at most 6.1 g T E, too.

5. Both are a normal number of variance T s^2 and at most T / 2 besides, so that each is within
   K = T / 2 + sqrt 2 pi s^2 sqrt T but for a chance of exp(-(K - T / 2)^2 / (2 T s^2)) = E. There are at most 2 K + 1
   whole numbers within K, and the total variation of Y and Z is at most

       tv = (6.1 g T (K + 1/2) + 1) E    a number.

6. D numbers of a round have independent noise, and so have R rounds, whatever is sent in them: all that is released is
   within R D tv of what x + Z would be, for either of two neighbouring sets of users. That makes it
   (epsilon, delta + (1 + e^epsilon) R D tv)-private. Devices beyond T only add more noise.

Where everything can be counted out (s from 1 to 1.5, up to 20 devices) Y needs none of this allowance: the uniform
numbers are noise as well. The numbers themselves are drawn exactly (`privacy.exact_gaussian`).
"""

from __future__ import annotations

import math

LEAST_STEPS = 4.0
"""Of a device's standard deviation: from here on what rounding costs is below 1e-50 a number for a million devices."""


_LARGE = 100.0
"""An exponent from which on nothing is left to bound."""


def total_variation(devices: int, steps: float) -> float:
    """tv, at most 1; `steps` is s, from 1."""
    reach = devices / 2 + math.sqrt(2) * math.pi * steps**2 * math.sqrt(devices)
    return min(1.0, chance_apart(devices, steps) * (reach + 0.5) + _exponential(steps))


def chance_apart(devices: int, steps: float) -> float:
    """6.1 g T E, a bound on the difference of the probabilities of one whole number."""
    if steps < 1:
        raise ValueError(f"{steps} steps; the bound is proven from 1 on")
    small = _exponential(steps)
    growth = math.exp(min(2.01 * devices * small**2, _LARGE))
    return 6.1 * growth * devices * small


def _exponential(steps: float) -> float:
    """E = exp(-pi^2 s^2)."""
    return math.exp(-((math.pi * steps) ** 2))


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
