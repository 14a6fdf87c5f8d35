"""Which round is chosen: the best so far, or the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

SELECTED_BY = ("HR@10", "NDCG@10")
"""The round is chosen by the first; the second decides among equals; then the earliest round wins."""


@dataclass
class Best:
    """The round chosen so far: its number, 0 where there is none, its metrics, and the values the model has then.

    The values are in memory or, from the next checkpoint on, in a file of their own (`file`), and not in both.
    """

    round: int = 0
    score: tuple[float, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    packed: dict[str, Tensor] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Name of the file of the values."""
        return f"best-{self.round}"

    def offer(self, number: int, metrics: Mapping[str, float], *, last: bool) -> bool:
        """Take a round that is better than the one so far or, where the `last` counts, any; whether it was taken."""
        score = tuple(metrics[name] for name in SELECTED_BY)
        taken = last or score > self.score
        if taken:
            self.round, self.score, self.metrics = number, score, dict(metrics)
        return taken
