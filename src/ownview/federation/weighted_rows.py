"""The server's mean where every row of a table has weights of its own."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from ownview.federation.server import MeanChange, add_rows
from ownview.federation.uploads import Upload
from ownview.seam.method import RowWeights
from ownview.seam.training import Params


class RowWeightedChange(MeanChange):
    """Row i of a table changes by sum_u q_ui (x_ui - x_i) / sum_u q_ui; a row that nobody gives weight stays.

    Parameters without rows change as ever.

    Args:
        shared: the values sent out.
        tables: names of those with rows.
        weigh: gives q.
    """

    def __init__(self, shared: Params, tables: Collection[str], weigh: RowWeights) -> None:
        super().__init__({name: value for name, value in shared.items() if name not in tables})
        self.weigh = weigh
        self.rows = {name: torch.zeros_like(value) for name, value in shared.items() if name in tables}
        self.totals = {name: torch.zeros(len(value)).to(value) for name, value in self.rows.items()}

    def add(self, upload: Upload) -> None:
        """Take one block's changes."""
        super().add(upload)
        for name, table in self.rows.items():
            change = upload.rows[name] if name in upload.rows else upload.whole[name]
            weights = self.weigh(change)
            counted = change * _wide(weights, change)
            if name in upload.rows:
                add_rows(table, upload.samples.items, counted)
                add_rows(self.totals[name], upload.samples.items, weights)
            else:
                table.add_(counted.sum(0))
                self.totals[name].add_(weights.sum(0))

    def mean(self) -> Params:
        """The mean change."""
        tiny = torch.finfo(torch.float32).tiny
        tables = {name: table / _wide(self.totals[name].clamp(min=tiny), table) for name, table in self.rows.items()}
        return super().mean() | tables


def _wide(weights: Tensor, like: Tensor) -> Tensor:
    return weights.reshape(weights.shape + (1,) * (like.dim() - weights.dim()))
