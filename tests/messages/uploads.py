"""Uploads made by hand."""

from __future__ import annotations

import torch

from ownview.messages.upload import Upload
from ownview.seam.training import Params


def upload_of(
    rows: Params | None = None,
    whole: Params | None = None,
    *,
    items: list[list[int]],
    touched: list[list[bool]] | None = None,
    samples: list[int] | None = None,
) -> Upload:
    """What clients 0, 1, ... send, as many as there are lists of items; each has one sample unless told otherwise."""
    place = torch.tensor(items)
    real = torch.ones_like(place, dtype=torch.bool) if touched is None else torch.tensor(touched)
    sizes = torch.ones(len(items), dtype=torch.long) if samples is None else torch.tensor(samples)
    return Upload(torch.arange(len(items)), sizes, place, real, rows or {}, whole or {})
