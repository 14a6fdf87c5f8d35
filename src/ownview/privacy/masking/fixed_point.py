"""Numbers as whole steps modulo 2^32, so that they can be masked and added up without any rounding.

A vector x is brought to steps of 1 / scale by stochastic rounding, which is right in the mean: floor(x scale + u) with
u uniform in [0, 1). Rounding can lengthen a vector; one that has left its bound is shortened and cut towards 0, so that
the bound holds for the whole numbers, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.messages.upload import MODULUS

_HALF = 2**31 - 1
_TAIL = 12.0
"""Standard deviations of noise that there is room for; more has a chance below 1e-32, and would spoil one number."""
_FEWEST_STEPS = 256
"""Steps that the bound must have at least: with fewer, rounding would drown what is sent."""
_SHORTER = 1 - 2.0**-40


@dataclass(frozen=True)
class FixedPoint:
    """How numbers become steps.

    Args:
        scale: steps of 1.
        bound: the largest norm of one client's vector, in steps.
    """

    scale: float
    bound: float

    @classmethod
    def fitting(cls, norm: float, clients: int, noise: float = 0.0, unit: float = 1.0) -> FixedPoint:
        """As fine as the sum of all clients allows: scale (clients norm + 12 noise) < 2^31.

        Args:
            norm: the largest of one client.
            clients: that are added up.
            noise: standard deviation of all noise in their sum.
            unit: what has a power of 2 of steps; with 1 nothing is rounded by the scale itself.
        """
        largest = clients * norm + _TAIL * noise
        scale = 2.0 ** math.floor(math.log2(_HALF / largest * unit)) / unit
        if scale * norm < _FEWEST_STEPS:
            raise SettingError(
                f"a sum of {clients:,} clients modulo 2^32 leaves {scale * norm:.3g} steps for what one of them adds; "
                f"expected at least {_FEWEST_STEPS}: fewer clients in a round, or less noise"
            )
        return cls(scale, scale * norm)

    def steps(self, values: Tensor, uniform: Tensor) -> Tensor:
        """[B, D] whole numbers whose norms are at most `bound`, exactly.

        Args:
            values: [B, D], float64.
            uniform: [B, D] random numbers in [0, 1) of every client's own.
        """
        whole = torch.floor(values * self.scale + uniform)
        lengths = whole.square().sum(1).sqrt()
        factors = (self.bound * _SHORTER / lengths.clamp(min=1)).clamp(max=1)
        shortened = torch.trunc(whole * factors[:, None]).long()
        whole = whole.long()
        # Exact: of vectors so short no sum of squares reaches 2^63.
        fits = (lengths <= 2 * self.bound) & (whole.square().sum(1) <= math.floor(self.bound**2))
        return torch.where(fits[:, None], whole, shortened)

    def values(self, words: Tensor) -> Tensor:
        """Float64 numbers of words modulo 2^32: those from 2^31 on are negative."""
        whole = words % MODULUS
        return torch.where(whole > _HALF, whole - MODULUS, whole).double() / self.scale
