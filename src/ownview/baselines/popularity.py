"""Popularity: the same list for everybody. Any method that learns taste must beat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked
from ownview.baselines.parts.counting import Cells, Counting, cells_of, whole
from ownview.data.timeline import Timeline
from ownview.seam.portable import Linear, Portable
from ownview.seam.training import Params


@dataclass(frozen=True)
class Popularity(Counting):
    """score of an item = how many training rows it has."""

    name: ClassVar[str] = "popularity"
    title: ClassVar[str] = "Popularity"
    summary: ClassVar[str] = "number of training interactions of an item, the same for everybody"

    def shapes(self, num_items: int) -> dict[str, tuple[int, ...]]:
        """A number an item."""
        return {"counts": (num_items,)}

    def counted(self, line: Timeline, num_items: int) -> dict[str, Cells]:
        """Rows of each item."""
        return {"counts": cells_of(np.bincount(line.items.values.numpy(), minlength=num_items))}

    def learned_from(self, sums: Mapping[str, Cells], num_items: int) -> Params:
        """The counts of all items."""
        return {"counts": torch.from_numpy(whole(sums["counts"], num_items)).to(torch.float32)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] the counts, for every user."""
        return learned["counts"].expand(len(asked.users), -1)

    def portable(self, learned: Params) -> Portable:
        """The counts, for every history."""
        return Linear((), learned["counts"])
