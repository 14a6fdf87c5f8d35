"""Who takes part in a round."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.base.randomness import bits, derive, unit
from ownview.federation.options import Participation


def participants(chosen: Participation, seed: int, number: int, num_clients: int, device: torch.device) -> Tensor:
    """Positions of the clients of round `number`, ascending.

    Poisson participation may choose nobody. A number above `num_clients` takes everybody.
    """
    everybody = torch.arange(num_clients, device=device)
    if chosen.kind == "share" and chosen.amount == 1.0:
        return everybody
    drawn = bits(derive(seed, "participants", number), everybody, torch.zeros_like(everybody))
    wanted = chosen.wanted(num_clients)
    if wanted is None:
        return everybody[unit(drawn) < chosen.amount]
    return drawn.argsort()[:wanted].sort().values
