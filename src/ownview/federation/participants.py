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
    if chosen.kind == "turns":
        return in_turn(seed, number, num_clients, int(chosen.amount), device)
    drawn = bits(derive(seed, "participants", number), everybody, torch.zeros_like(everybody))
    wanted = chosen.wanted(num_clients)
    if wanted is None:
        return everybody[unit(drawn) < chosen.amount]
    return drawn.argsort()[:wanted].sort().values


def in_turn(seed: int, number: int, num_clients: int, cohort: int, device: torch.device) -> Tensor:
    """Positions of the clients of round `number`, ascending: everybody once before anybody again, in a drawn order.

    A pass over all clients takes `rounds_of_a_pass(num_clients, cohort)` rounds, the last of which may have fewer
    clients; every pass has an order of its own.
    """
    through, place = divmod(number - 1, rounds_of_a_pass(num_clients, cohort))
    everybody = torch.arange(num_clients, device=device)
    order = bits(derive(seed, "turns", through), everybody, torch.zeros_like(everybody)).argsort()
    return order[place * cohort : (place + 1) * cohort].sort().values


def rounds_of_a_pass(num_clients: int, cohort: int) -> int:
    """Rounds until everybody had a turn."""
    return -(-num_clients // cohort)
