"""A client and an item as one integer, so that many lists can be searched at once."""

from __future__ import annotations

import torch
from torch import Tensor

_SEARCH_COST = 32
"""Looking a key up in an ordered list costs about as much as writing this many entries of a table; see `find`."""


def keys_of(clients: Tensor, items: Tensor, num_items: int) -> Tensor:
    """[B, R] client m + item, for clients [B] and items [B, R]."""
    return clients[:, None] * num_items + items


def rows_of(table: Tensor, places: Tensor) -> Tensor:
    """[B, R, ...] the rows of a table [T, ...] at places [B, R]; a new tensor."""
    return table.index_select(0, places.reshape(-1)).reshape(*places.shape, *table.shape[1:])


def find(listed: Tensor, asked: Tensor, span: int) -> Tensor:
    """[A] the place of each asked key among the listed, or -1.

    Few keys are searched in the list. Where many are asked for, a table of all possible keys costs less.

    Args:
        listed: [K] ascending, none twice, below `span`.
        asked: [A] below `span`.
        span: number of possible keys.
    """
    if len(listed) == 0:
        return torch.full_like(asked, -1)
    if len(asked) * _SEARCH_COST < span:
        place = torch.searchsorted(listed, asked).clamp_(max=len(listed) - 1)
        return torch.where(listed[place] == asked, place, -1)
    table = torch.full((span,), -1, dtype=torch.int32, device=listed.device)
    table[listed] = torch.arange(len(listed), dtype=torch.int32, device=listed.device)
    return table[asked].long()
