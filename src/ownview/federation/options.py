"""Options of the federation: who takes part and how the server combines what it gets. No method's business."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.randomness import bits, derive, unit
from ownview.config.search import Between, OneOf
from ownview.config.settings import Settings, setting
from ownview.federation.transforms import transforms
from ownview.privacy.budget import budget
from ownview.privacy.masks import masked_sums


@dataclass(frozen=True)
class FederationOptions(Settings):
    """How a round is run."""

    title: ClassVar[str] = "federation"

    clients: str = setting(
        "all", "clients of a round: all, a share such as 0.6, a number such as 100, poisson:0.6, or turns:128",
        search=OneOf(("all", "0.6", "0.3", "0.1")),
    )  # fmt: skip
    receiving: float = setting(
        1.0, "share of a round's clients that receive; the others go on from their own table", above=0, high=1
    )
    weighting: str = setting(
        "method", "weights of the server's mean: the method's own, samples or uniform",
        choices=("method", "samples", "uniform"), search=OneOf(("samples", "uniform")),
    )  # fmt: skip
    row_mean: str = setting(
        "method", "a table's row is averaged over: as the method says, all clients, or those whose samples touched it",
        choices=("method", "all", "touched"), search=OneOf(("all", "touched")),
    )  # fmt: skip
    server_optimizer: str = setting(
        "plain", "how the server applies the mean change", choices=("plain", "momentum", "adam"),
        search=OneOf(("plain", "momentum", "adam")),
    )  # fmt: skip
    server_learning_rate: float = setting(
        1.0, "factor on the mean change", above=0, search=Between(1e-3, 10.0, log=True)
    )
    server_momentum: float = setting(
        0.9, "momentum, or Adam's first decay", low=0, high=0.9999, search=Between(0.0, 0.99)
    )
    privacy: str = setting(
        "none",
        "none; a budget that is accounted for: central:epsilon=E, distributed:epsilon=E or local:epsilon=E, with "
        "delta=D, clip=C or clip=adaptive (noise=seeded: the same in every run, and not private); masks without noise: "
        "masked:clip=C; or noise without an epsilon, from the seed: laplace:SCALE, gaussian:clip=C,noise=Z",
    )

    def __post_init__(self) -> None:
        given: object = self.clients
        if isinstance(given, int | float):  # TOML and Python write numbers as numbers
            object.__setattr__(self, "clients", str(given))
        super().__post_init__()
        participation(self.clients)
        if budget(self.privacy) is None and masked_sums(self.privacy) is None:
            transforms(self.privacy)

    def for_rounds(self, rounds: int) -> FederationOptions:
        """With a budget for so many rounds, where there is a budget."""
        asked = budget(self.privacy)
        return self if asked is None else replace(self, privacy=str(asked.for_rounds(rounds)))

    def repeating(self) -> FederationOptions:
        """With noise from the seed, where there is a budget: the same again in every run, and not private."""
        asked = budget(self.privacy)
        return self if asked is None else replace(self, privacy=str(replace(asked, seeded=True)))


@dataclass(frozen=True)
class Participation:
    """kind "share": round(amount * n) clients; "number": that many; "poisson": each with probability amount.

    "turns": that many, and nobody again before everybody had a turn.
    """

    kind: str
    amount: float

    def wanted(self, num_clients: int) -> int | None:
        """How many of so many clients; None where they are not chosen by number."""
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
