"""Histories that grow between rounds: a client sends what is new as a difference, and remembers what it has sent.

Items stand in the order in which they were sent, those of one round by time. So the places of what was sent before
never change, and pairs of such items, which a server has already, stay as they are, also where a rating of long ago
comes late.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.parts.sequences.places import Places
from ownview.seam.training import Context


def by_sending(places: Places, sent: Tensor) -> tuple[Places, Tensor]:
    """Items in the order in which they were sent, new ones last; and [l] 1 where an item was sent before.

    Args:
        places: of the client's items, oldest first.
        sent: [m] the round in which each item was sent, 0 where it was not; or one number where histories do not grow,
            1 once all was sent.
    """
    if not sent.dim():
        return places, sent * places.mask
    when = sent[places.rows]
    turn = torch.where(places.mask > 0, torch.where(when > 0, when, torch.inf), -1.0)
    order = torch.argsort(turn, stable=True)
    moved = Places(places.rows[order], places.times[order], places.mask[order])
    return moved, (when > 0).to(moved.mask.dtype)[order] * moved.mask


def sent_by(places: Places, sent: Tensor, context: Context) -> Tensor:
    """What the client remembers once it has sent these items in this round; shaped as `sent`."""
    if not sent.dim():
        return torch.ones_like(sent)
    behind = torch.where(places.mask > 0, places.rows, len(sent))
    here = torch.cat([torch.zeros_like(sent), sent.new_zeros(1)]).scatter(0, behind, torch.ones_like(places.mask))
    return torch.where((sent == 0) & (here[:-1] > 0), torch.full_like(sent, context.round), sent)
