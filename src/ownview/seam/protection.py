"""An accounted budget as a plan: how much noise is added, to which sums, by whom, and in how many rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

CENTRAL, DISTRIBUTED, LOCAL = MODES = ("central", "distributed", "local")

QUANTILE_SHARE = 0.01
"""Of the budget of a round (in mu^2): what an adaptive clip takes for its private quantile."""


@dataclass(frozen=True)
class Protection:
    """User-level differential privacy: one user more or less hardly changes any output.

    Args:
        mode: who adds the noise: "central", the aggregator; "distributed", every device a share of it; "local", every
            device as much as its own upload needs.
        epsilon: of all rounds together.
        delta: likewise.
        clip: C, the largest norm of what a client adds to the sums of a round; the first one where `adaptive`.
        adaptive: whether C follows a private quantile of the clients' norms.
        noise: z of every round: standard deviation over C of the noise that hides one client.
        clients: the fixed number that sums are divided by: how many clients a round is expected to have.
        relation: which two sets of users are told apart by at most epsilon, in words.
        accountant: how epsilon was found, in words.
        threshold: T, how many devices send at least, where they share the noise: each adds variance sigma^2 / T.
        seeded: whether noise comes from the run's seed, which can then be subtracted: nothing is private.
        median: whether the median of several noisy sums counts, which has more noise than all of them together.
    """

    mode: str
    epsilon: float
    delta: float
    clip: float
    adaptive: bool
    noise: tuple[float, ...]
    clients: float
    relation: str
    accountant: str
    threshold: int = 1
    seeded: bool = False
    median: bool = False

    @property
    def rounds(self) -> int:
        """How many rounds the budget is for."""
        return len(self.noise)

    def of_changes(self, number: int) -> float:
        """Noise multiplier z of round `number` (from 1) for the sums; a private quantile takes its share."""
        return self.noise[number - 1] / (math.sqrt(1 - QUANTILE_SHARE) if self.adaptive else 1.0)

    def of_quantile(self, number: int) -> float:
        """Standard deviation of the noise on the count of norms below C, to which a client adds 1/2 or -1/2."""
        return self.noise[number - 1] / (2 * math.sqrt(QUANTILE_SHARE))

    def in_sum(self, number: int) -> float:
        """Standard deviation of the noise that the sum of round `number` has, for clients of norm C = 1.

        Where devices share the noise and more than T of them send, the sum has more. The median of groups has pi / 2
        times the variance of their sum at most, which it has of many groups.
        """
        together = {LOCAL: self.clients, DISTRIBUTED: self.clients / self.threshold}.get(self.mode, 1.0)
        return self.of_changes(number) * math.sqrt(together * (math.pi / 2 if self.median else 1.0))
