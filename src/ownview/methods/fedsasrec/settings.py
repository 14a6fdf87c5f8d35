"""FedSASRec's settings besides those of the network, and where their best values are searched for."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.sequences.sequence import SequenceSettings


@dataclass(frozen=True)
class GradientSettings(SequenceSettings):
    """Steps of a client in a round, and how much of its gradients it sends."""

    local_steps: int = setting(1, "steps of a client in a round", low=1, high=100, search=OneOf((1, 2, 4, 8)))
    local_rate: float = setting(
        1.0, "rate of a client's steps; one alone does not depend on it", above=0, search=Between(0.1, 10.0, log=True)
    )
    sent_rows: int = setting(
        0, "rows of the item table's gradient that a client sends, the largest; 0 for all", low=0,
        search=OneOf((0, 64, 256, 1024)),
    )  # fmt: skip
    sent_bits: int = setting(32, "bits of a number that a client sends, 8 or 32", low=8, search=OneOf((8, 32)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sent_bits not in (8, 32):
            nearest = 8 if self.sent_bits < 20 else 32
            raise SettingError(f"FedSASRec setting sent_bits={self.sent_bits}: expected 8 or 32, such as {nearest}")

    @property
    def in_factors(self) -> bool:
        """Whether what a client sends is the gradient itself over all items, which can be summed up in factors."""
        whole = self.negatives == 0 and self.sent_rows == 0 and self.sent_bits == 32
        return whole and self.local_steps == 1 and not self.prefixes
