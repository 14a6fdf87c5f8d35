"""FedNext's settings, and where their best values are searched for."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.text.text_beside import TextSettings

DAY = 86_400.0
"""Seconds."""


@dataclass(frozen=True)
class NextSettings(TextSettings):
    """Scales, weights and spans of time of FedNext's formulas."""

    scales: tuple[float, ...] = setting(
        (1.0, 8.0, 64.0), "places after which a past item counts 1/e, one past a scale",
        above=0, infinite=True, search=OneOf(((3.0,), (0.5, 3.0, 20.0), (1.0, 8.0, 64.0), (1.0, 4.0, 20.0))),
    )  # fmt: skip
    horizon: float = setting(
        1.0, "places after which a later item counts 1/e", above=0, search=OneOf((0.5, 1.0, 2.0, 4.0))
    )
    regularization: float = setting(
        0.0, "lambda in mean diagonals of each scale; 0 takes 2 in the full form, 0.1 in the rank form",
        low=0, search=Between(0.05, 20.0, log=True), afterwards=True,
    )  # fmt: skip
    weighting: float = setting(0.5, "a client with L items counts (L - 1)^-weighting a position", low=0, high=1)
    length: int = setting(200, "latest items of a history that are looked at", low=2)
    rank: int = setting(0, "item vectors instead of items in the past, this many numbers each; 0: none", low=0)
    iterations: int = setting(5, "rank form: rounds in which item vectors are found", low=1)
    nearness: float = setting(16.0, "rank form: as FedEASE's, in what item vectors are found from", above=0)
    pause_days: float = setting(1.0, "days without an item after which a sitting is over", above=0)
    sittings: float = setting(4.0, "sittings after which a past one counts 1/e", above=0)
    across_regularization: float = setting(
        100.0, "lambda of the sum across sittings, in mean diagonals",
        above=0, search=Between(1.0, 300.0, log=True), afterwards=True,
    )  # fmt: skip
    ease_regularization: float = setting(200.0, "lambda of EASE^R beside it after a pause", above=0, afterwards=True)
    recent_days: float = setting(30.0, "days after which an item counts 1/e in recent popularity", above=0)
    recent_weight: float = setting(
        0.5, "of recent popularity after a pause", low=0, search=Between(0.0, 2.0), afterwards=True
    )
    takers: int = setting(
        0, "people who must have an item among the latest that are looked at before sums recommend it; 0: no limit",
        low=0, afterwards=True,
    )  # fmt: skip

    @property
    def ridge(self) -> float:
        """lambda; a default of its own for each form."""
        return self.regularization or (0.1 if self.rank else 2.0)

    @property
    def pause(self) -> float:
        """Seconds without an item after which a sitting is over."""
        return self.pause_days * DAY
