"""Histories as tables: 1 for an item that the client has in training, else 0."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.data.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Histories:
    """Tables made from the training lists on demand; none is stored.

    Args:
        train: every client's training items.
        num_items: m.
        dtype: of the numbers.
    """

    train: Ragged
    num_items: int
    dtype: torch.dtype

    def counts(self, clients: Tensor) -> Tensor:
        """[B, m] how often each item stands in the lists."""
        listed, real = self.train.padded(clients)
        counts = torch.zeros(len(clients), self.num_items, dtype=self.dtype, device=listed.device)
        return counts.scatter_add_(1, listed, real.to(self.dtype))

    def take(self, clients: Tensor, items: Tensor | None) -> Tensor:
        """[B, R] of `items` [B, R], or [B, m] of all items."""
        seen = self.counts(clients).clamp_(max=1)
        return seen if items is None else seen.gather(1, items)
