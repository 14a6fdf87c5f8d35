"""What all forms of FedNext share: settings, weights of positions, and sittings."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.methods.fednext.settings import DAY, NextSettings
from ownview.parts.sequences.places import Places
from ownview.seam.form import Form
from ownview.seam.training import Params


@dataclass(frozen=True)
class NextForm(Form, ABC):
    """One form of FedNext.

    Args:
        world: without times there are no sittings.
        given: the settings.
    """

    given: NextSettings

    @property
    def clock(self) -> bool:
        """Whether times are known."""
        return self.world.order == "times"

    def weight(self, places: Places) -> Tensor:
        """[] of each of the client's positions: (L - 1)^-weighting for L items; a client with one has no position."""
        return (places.mask.sum() - 1).clamp(min=1) ** -self.given.weighting

    def recently(self, p: Params, places: Places) -> Tensor:
        """[l] exp(-age / recent) of every item, by the client's clock; 1 for items with a time after it."""
        age = (p["past.now"] - places.times).clamp(min=0).to(places.mask.dtype)
        return torch.exp(-age / (self.given.recent_days * DAY)) * places.mask

    def has_paused(self, p: Params, places: Places) -> Tensor:
        """[] whether more than a pause has passed since the client's last item; true for a client without any."""
        last = torch.cat([places.times.new_zeros(1), places.times])[-1]
        return (p["past.now"] - last).to(places.mask.dtype) > self.given.pause
