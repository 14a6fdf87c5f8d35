"""The setting `clients`: who takes part in a round."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.randomness import bits, derive, unit


@dataclass(frozen=True)
class Participation:
    """kind "share": round(amount * n) clients; "number": that many; "poisson": each with probability amount.

    "turns": that many, and no client again before all others had a turn.
    """

    kind: str
    amount: float

    def wanted(self, num_clients: int) -> int | None:
        """Number of clients chosen of so many; None where they are not chosen by number."""
        if self.kind in ("poisson", "turns"):
            return None
        return int(self.amount) if self.kind == "number" else max(round(self.amount * num_clients), 1)


def participation(text: str) -> Participation:
    """Read the setting `clients`."""
    if text == "all":
        return Participation("share", 1.0)
    named = text.partition(":")[0]
    kind = named if named in ("poisson", "turns") else "share" if "." in text else "number"
    whole = kind in ("number", "turns")
    try:
        amount = (int if whole else float)(text.removeprefix(f"{kind}:"))
    except ValueError:
        amount = 0
    if not (amount > 0 and (whole or amount <= 1)):
        raise SettingError(
            f"federation setting clients={text!r}: expected all, a share in (0, 1] such as 0.6, a number of clients "
            "such as 100, poisson:P with P in (0, 1], or turns:N with a number N of clients"
        )
    return Participation(kind, amount)


def participants(chosen: Participation, seed: int, number: int, num_clients: int, device: torch.device) -> Tensor:
    """Positions of the clients of round `number`, ascending.

    Poisson participation may choose no client. A number above `num_clients` takes all.
    """
    clients = torch.arange(num_clients, device=device)
    if chosen.kind == "share" and chosen.amount == 1.0:
        return clients
    if chosen.kind == "turns":
        return in_turn(seed, number, num_clients, int(chosen.amount), device)
    drawn = bits(derive(seed, "participants", number), clients, torch.zeros_like(clients))
    wanted = chosen.wanted(num_clients)
    if wanted is None:
        return clients[unit(drawn) < chosen.amount]
    return drawn.argsort()[:wanted].sort().values


def in_turn(seed: int, number: int, num_clients: int, cohort: int, device: torch.device) -> Tensor:
    """Positions of the clients of round `number`, ascending: every client once before any twice, in a drawn order.

    A pass over all clients takes `rounds_of_a_pass(num_clients, cohort)` rounds, the last of which may have fewer
    clients; every pass has an order of its own.
    """
    through, place = divmod(number - 1, rounds_of_a_pass(num_clients, cohort))
    clients = torch.arange(num_clients, device=device)
    order = bits(derive(seed, "turns", through), clients, torch.zeros_like(clients)).argsort()
    return order[place * cohort : (place + 1) * cohort].sort().values


def rounds_of_a_pass(num_clients: int, cohort: int) -> int:
    """Rounds until everybody had a turn."""
    return -(-num_clients // cohort)
