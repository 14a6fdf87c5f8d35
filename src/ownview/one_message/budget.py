"""Noise that each of the two servers adds for the whole budget, so that one honest server is enough.

A contribution's numbers have norm C at most, in steps. A person is in `releases` opened sums: adding is one, taking out
another. Each server adds round(2^e G) to every number of its share of a batch (`privacy.exact_gaussian`), z = 2^e / C.
Whatever the other server knows, this much noise is in what it sees; what is published has twice the variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.base.errors import SettingError
from ownview.privacy.accountant import Sampling, epsilon_of, noise_for
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.exact_gaussian import delta_of_tails, rounded_gaussian

EXPONENT = 16
RELEASES = 2
"""Adding, and taking out."""


@dataclass(frozen=True)
class ShareBudget:
    """As an agreement names it.

    Args:
        epsilon: of a contribution and of taking it out, together.
        delta: likewise.
        clip: C, steps.
        exponent: e.
        releases: opened sums that one contribution is in at most.
    """

    epsilon: float
    delta: float
    clip: int
    exponent: int = EXPONENT
    releases: int = RELEASES

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> ShareBudget:
        """The longest norm that noise of 2^16 steps covers."""
        z = noise_for(epsilon, delta, RELEASES, Sampling())
        return cls(epsilon, delta, math.floor(2**EXPONENT / z))

    @property
    def noise(self) -> float:
        """z."""
        return float(2**self.exponent / self.clip)

    def require_covered(self, numbers: int) -> None:
        """Refuse an agreement whose noise is less than its epsilon needs."""
        spent = epsilon_of([self.noise] * self.releases, self.delta, Sampling())
        tails = delta_of_tails(self.epsilon, self.releases, numbers)
        if spent > self.epsilon * (1 + 1e-9) or tails > self.delta * 1e-9:
            raise SettingError(
                f"agreement: noise of {self.noise:.4g} norms is epsilon {spent:.4g}, not {self.epsilon:g}; "
                "expected an agreement that ownview sums agree wrote"
            )

    def drawn(self, numbers: int) -> npt.NDArray[np.uint32]:
        """[numbers] fresh noise from the system's entropy, modulo 2^32."""
        stream = NoiseKey.fresh().stream("share")
        return rounded_gaussian(stream, numbers, self.exponent).astype(np.uint32)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))
