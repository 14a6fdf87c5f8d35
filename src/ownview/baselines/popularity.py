"""Popularity: the same list for everybody. Any method that learns taste must beat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.baselines.central import Asked, OneShot
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.seam.portable import Linear, Portable
from ownview.seam.training import Params


@dataclass(frozen=True)
class Popularity(OneShot):
    """score of an item = how many training rows it has."""

    name: ClassVar[str] = "popularity"
    title: ClassVar[str] = "Popularity"
    summary: ClassVar[str] = "number of training interactions of an item, the same for everybody"
    paper: ClassVar[str] = "none: a control"
    by_history: ClassVar[bool] = True
    yardstick: ClassVar[bool] = True

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Count."""
        counts = torch.bincount(split.train.values, minlength=split.num_items)
        return {"counts": counts.to(torch.float32)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] the counts, for every user."""
        return learned["counts"].expand(len(asked.users), -1)

    def portable(self, learned: Params) -> Portable:
        """The counts, whatever the history."""
        return Linear((), learned["counts"])
