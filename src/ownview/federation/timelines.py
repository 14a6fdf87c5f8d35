"""Clients' training items in time order, as methods see them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.data.ragged import Ragged
from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class Timelines:
    """Items of n clients, oldest first, and their times.

    Args:
        items: of every client.
        times: aligned with them; None where the data has no times.
        num_items: m.
        dtype: of masks.
    """

    items: Ragged
    times: Ragged | None
    num_items: int
    dtype: torch.dtype

    def seen(self, name: str, clients: Tensor, at_hand: Tensor | None = None, real: Tensor | None = None) -> Params:
        """NAME.rows, NAME.times and NAME.mask of some clients, [B, L] each.

        Args:
            name: of the parameter.
            clients: [B] positions.
            at_hand: [B, R] the items behind the rows at hand, ascending but for padding; None for whole tables.
            real: [B, R] False for padding.
        """
        listed, there = self.items.padded(clients)
        rows = listed
        if at_hand is not None and real is not None:
            rows = torch.searchsorted(torch.where(real, at_hand, self.num_items), listed.contiguous())
        if self.times is None:
            times = torch.arange(listed.shape[1], device=listed.device).expand_as(listed)
        else:
            times = self.times.padded(clients)[0]
        return {
            f"{name}.rows": torch.where(there, rows, 0),
            f"{name}.times": times,
            f"{name}.mask": there.to(self.dtype),
        }
