"""Who takes part in a masked sum, how many of them must be left, and whom a client shares pairwise masks with.

Shares of a client's secrets go to everybody in the round, and T = `survivors` of them are needed to give a secret back.
So fewer than T clients cannot lift a mask, whatever the server knows besides; and any T can. T is more than half of
all, so that any two sets of T clients share a client; as a client shows its shares once, the server cannot collect
shares for two different sets of arrived clients.

Pairwise masks cost a keystream each, and reach fewer clients (Bell et al. 2020): everybody stands on a ring in a random
order, and a client's neighbours are the k / 2 on either side. If k / 2 clients in a row are missing the others could
fall apart into groups, whose sums would show. All receive the order, and no client shows a share where such a gap
is. What a client cannot see is who works together with the server: where a share `COLLUDING` of all do, and all but T
drop out, a gap has a chance of at most n (share missing)^(k / 2), and k is the smallest with which that is below 2^-40.
In a cohort too small for that everybody is everybody's neighbour.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ownview.base.errors import SettingError

COLLUDING = 0.05
"""Share of the clients that may work together with the server."""
FEWEST = 3
"""Clients that a masked sum is made of: of two, each would know the other's part."""
MOST = 2000
"""Clients of a round: the server passes on 124 bytes for every pair of clients either way, half a gigabyte in all."""
_APART = 2.0**-40


@dataclass(frozen=True)
class Cohort:
    """Sizes of a masked sum, agreed on by server and clients.

    Args:
        clients: n, of a round at most.
        survivors: T, how many must be left at every step.
        neighbours: k, how many others a client has pairwise masks with.
    """

    clients: int
    survivors: int
    neighbours: int

    def of(self, client: int, order: Sequence[int]) -> list[int]:
        """The client's neighbours on a ring in this order; all other clients in a small cohort."""
        if self.neighbours >= len(order) - 1:
            return [other for other in order if other != client]
        place = order.index(client)
        steps = [step for step in range(-(self.neighbours // 2), self.neighbours // 2 + 1) if step]
        return [order[(place + step) % len(order)] for step in steps]

    def refusal(self, order: Sequence[int], left: Collection[int]) -> str | None:
        """Why the sum over the clients left must not be released; None if it may."""
        there = [client in left for client in order]
        if sum(there) < self.survivors:
            return f"{sum(there)} clients are left, and {self.survivors} are needed"
        if self.neighbours >= len(order) - 1:
            return None
        gap = longest = 0
        for one in (*there, *there):  # twice round, for a gap over the end
            gap = 0 if one else gap + 1
            longest = max(longest, gap)
        if longest >= self.neighbours // 2:
            return f"{longest} clients in a row are missing, and masks reach over {self.neighbours // 2 - 1}"
        return None


@lru_cache(maxsize=64)
def cohort(clients: int, survivors: int, wanted: int | None = None) -> Cohort:
    """A cohort with enough neighbours for so many clients, of which `survivors` are left at least.

    More neighbours can be asked for, and not fewer.
    """
    if clients < FEWEST or survivors < FEWEST:
        few = min(clients, survivors)
        raise SettingError(f"masks hide a client among others: {few} of them are too few; expected at least {FEWEST}")
    missing = (int(COLLUDING * clients) + clients - survivors) / clients
    enough = next((k for k in range(2, clients - 1, 2) if clients * missing ** (k / 2) <= _APART), clients - 1)
    if wanted is None:
        return Cohort(clients, survivors, enough)
    if enough == clients - 1:
        raise SettingError(
            f"neighbours={wanted}: in a round of {clients} clients, of which {survivors} may be left, everybody shares "
            "masks with everybody; expected no neighbours"
        )
    if wanted % 2 or not enough <= wanted < clients:
        raise SettingError(
            f"neighbours={wanted}: of {clients} clients, of which {survivors} may be left, fewer than {enough} "
            f"neighbours hide too little; expected an even number from {enough} to {(clients - 1) // 2 * 2}"
        )
    return Cohort(clients, survivors, wanted)


def ring(clients: Sequence[int], seed: int) -> list[int]:
    """Clients in a random order."""
    return [clients[place] for place in np.random.default_rng(seed).permutation(len(clients))]
