"""FedEASE's settings, and where their best values are searched for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.text.text_beside import TextSettings


@dataclass(frozen=True)
class EaseSettings(TextSettings):
    """lambda and the two spans of time of FedEASE's formula."""

    regularization: float = setting(
        100.0, "lambda, added to the diagonal of the summed pairs",
        above=0, search=Between(10.0, 3000.0, log=True), afterwards=True,
    )  # fmt: skip
    nearness: float = setting(
        16.0, "places after which a pair of a history counts 1/e; inf: all pairs count 1",
        above=0, infinite=True, search=OneOf((4.0, 8.0, 16.0, 32.0, math.inf)),
    )  # fmt: skip
    recency: float = setting(
        4.0, "places after which an item counts 1/e when its client is asked; inf: all items count 1",
        above=0, infinite=True, search=OneOf((2.0, 4.0, 8.0, 16.0, math.inf)), afterwards=True,
    )  # fmt: skip
    takers: int = setting(
        0, "people who must have taken an item before sums recommend it, so that fewer cannot push one; 0: no limit",
        low=0, afterwards=True,
    )  # fmt: skip
