"""What both forms of FedNext share: settings in the units they are used in, and what the client knows of now."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.parts.places import Places
from ownview.seam.client import Patch
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class NextSettings:
    """FedNext's settings; times are in seconds, see `FedNext` for what each means."""

    scales: tuple[float, ...]
    horizon: float
    regularization: float
    weighting: float
    length: int
    rank: int
    iterations: int
    nearness: float
    pause: float
    sittings: float
    across_regularization: float
    ease_regularization: float
    recent: float
    recent_weight: float

    def weight(self, places: Places) -> Tensor:
        """[] of each of the client's positions: (L - 1)^-weighting for L items; a client with one has no position."""
        return (places.mask.sum() - 1).clamp(min=1) ** -self.weighting

    def recently(self, p: Params, places: Places) -> Tensor:
        """[l] exp(-age / recent) of every item, by the client's clock; 1 for what its clock says is yet to come."""
        age = (p["past.now"] - places.times).clamp(min=0).to(places.mask.dtype)
        return torch.exp(-age / self.recent) * places.mask

    def has_paused(self, p: Params, places: Places) -> Tensor:
        """[] whether more than a pause has passed since the client's last item; so it has for one without any."""
        last = torch.cat([places.times.new_zeros(1), places.times])[-1]
        return (p["past.now"] - last).to(places.mask.dtype) > self.pause


@dataclass(frozen=True)
class NextForm:
    """What both forms of FedNext begin with.

    Args:
        given: the settings.
        world: without times there are no sittings.
    """

    given: NextSettings
    world: World

    @property
    def clock(self) -> bool:
        """Whether times are known."""
        return self.world.order == "times"

    @property
    def left_out(self) -> tuple[str, ...]:
        """What a sum over the history cannot say."""
        if not self.clock:
            return ()
        return ("what the model does after a pause is left out: whoever picks items is within a sitting",)


def column(places: Places, values: Tensor) -> Patch:
    """A number [l] an item, as a patch of one column."""
    return Patch(places.rows, places.rows.new_zeros(1), values[:, None])
