"""From what a client had to what it took next: inside sittings by place, across them by sitting.

Items stand oldest first with padding in front (`parts.sequences.places`), so the distance of two items does not depend
on how many a client has: every client's sums over positions have one shape, of which a client fills a corner.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ownview.parts.sequences.places import Places


def past(length: int, tau: float, like: Tensor) -> Tensor:
    """[l, l] row t: what had been before place t; the item one place before counts 1, older ones exp(-more / tau)."""
    lag = _lag(length, like)
    return torch.where(lag > 0, torch.exp(-(lag - 1).clamp(min=0) / tau), 0.0)


def future(length: int, horizon: float, like: Tensor) -> Tensor:
    """[l, l] row t: what came from place t on; the item there counts 1, later ones exp(-later / horizon)."""
    lag = _lag(length, like)
    return torch.where(lag <= 0, torch.exp(lag.clamp(max=0) / horizon), 0.0)


def _lag(length: int, like: Tensor) -> Tensor:
    place = torch.arange(length, dtype=like.dtype, device=like.device)
    return place[:, None] - place


class Across(NamedTuple):
    """What pauses part; row t is 0 but where place t begins a sitting.

    before: [l, l] everything before that pause, by sitting: exp(-k / tau) for those of the k-th sitting before, k from
        0, over the square root of how many items they are
    after:  [l, l] the sitting that begins there, every item over the square root of how many they are
    """

    before: Tensor
    after: Tensor


def across(places: Places, pause: float, tau: float) -> Across:
    """A client's sittings, which end where more than `pause` seconds pass; times that run backwards end none."""
    mask, begins = places.mask, _begins(places, pause)
    sitting = begins.cumsum(0)
    ago = sitting[:, None] - 1 - sitting
    earlier = torch.where(ago >= 0, 1.0, 0.0) * mask * begins[:, None]
    same = (sitting[:, None] == sitting).to(mask.dtype) * mask * begins[:, None]
    before = earlier * torch.exp(-ago.clamp(min=0) / tau) / earlier.sum(1, keepdim=True).clamp(min=1).sqrt()
    after = same / same.sum(1, keepdim=True).clamp(min=1).sqrt()
    return Across(before, after)


def coming_back(places: Places, pause: float, tau: float) -> Tensor:
    """[l] how much each item counts when the client comes back after its last sitting: exp(-k / tau)."""
    sitting = _begins(places, pause).cumsum(0)
    return torch.exp(-(sitting[-1:] - sitting) / tau) * places.mask


def _begins(places: Places, pause: float) -> Tensor:
    """[l] 1 for an item that comes more than `pause` seconds after the one before, else 0."""
    times, mask = places.times, places.mask
    gap = torch.cat([times[:1] * 0, times[1:] - times[:-1]])
    known = torch.cat([mask[:1] * 0, mask[:-1]]) * mask
    return (gap > pause).to(mask.dtype) * known


def standardised(scores: Tensor) -> Tensor:
    """[..., m] with mean 0 and standard deviation 1 over the last axis; 0 where all are equal."""
    centred = scores - scores.mean(-1, keepdim=True)
    return centred / centred.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-12)
