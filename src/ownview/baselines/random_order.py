"""Random order: every item has the same score, so that ties decide. What is not above it has learnt nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.portable import Linear, Portable
from ownview.seam.training import Params


@dataclass(frozen=True)
class RandomOrder(OneShot):
    """score of an item = 0. With ties = expected the figure is the mean over all orders, and not that of one draw."""

    name: ClassVar[str] = "random-order"
    title: ClassVar[str] = "Random order"
    summary: ClassVar[str] = "every item alike: what chance alone has"
    by_history: ClassVar[bool] = True
    sends_nothing: ClassVar[bool] = True
    speaks_of_new: ClassVar[bool] = True
    yardstick: ClassVar[bool] = True

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """A zero an item."""
        return {"zeros": torch.zeros(split.num_items)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] zeros."""
        return learned["zeros"].expand(len(asked.users), -1)

    def portable(self, learned: Params) -> Portable:
        """Zeros, whatever the history."""
        return Linear((), learned["zeros"])
