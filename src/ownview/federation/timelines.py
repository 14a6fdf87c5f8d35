"""Timelines: clients' training items in time order, with times and masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.data.timeline import Timeline
from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class Timelines:
    """Items of n clients, oldest first, and their times.

    Args:
        line: of every client.
        num_items: m.
        dtype: of masks.
    """

    line: Timeline
    num_items: int
    dtype: torch.dtype

    def seen(self, name: str, clients: Tensor, at_hand: Tensor | None = None, real: Tensor | None = None) -> Params:
        """NAME.rows, NAME.times and NAME.mask of some clients, [B, L] each, and NAME.now [B].

        Args:
            name: of the parameter.
            clients: [B] positions.
            at_hand: [B, R] the items behind the rows at hand, ascending but for padding; None for whole tables.
            real: [B, R] False for padding.
        """
        listed, there = self.line.items.padded(clients)
        rows = listed
        if at_hand is not None and real is not None:
            rows = torch.searchsorted(torch.where(real, at_hand, self.num_items), listed.contiguous())
        if self.line.times is None:
            times = torch.arange(listed.shape[1], device=listed.device).expand_as(listed)
        else:
            times = self.line.times.padded(clients)[0]
        now = there.sum(1) if self.line.now is None else self.line.now[clients]
        return {
            f"{name}.rows": torch.where(there, rows, 0),
            f"{name}.times": times,
            f"{name}.mask": there.to(self.dtype),
            f"{name}.now": now,
        }
