"""Whom a client shares masks with: everybody in a small cohort, some neighbours in a large one (Bell et al. 2020).

Clients stand on a ring in a random order, and everybody's neighbours are the k / 2 on either side. How many are enough
follows from what may go wrong, for n clients of which a share `COLLUDING` works together with the server and all but
`survivors` may drop out; neighbours are then a random set of the others:

- the server learns a client's masks where `threshold` of its neighbours work with it: n P(H_1 >= threshold)
- nobody can lift a client's masks where fewer than `threshold` of its neighbours are left: n P(H_2 < threshold)
- honest clients that are left fall apart where k / 2 in a row are missing: n (share missing)^(k / 2)

H_1 and H_2 are hypergeometric. The first and the third are kept below 2^-40, the second, which costs a round and tells
nothing, below 2^-20.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ownview.base.errors import SettingError

COLLUDING = 0.05
"""Share of the clients that may work together with the server."""
FEWEST = 3
"""Clients that a masked sum is made of: of two, each would know the other's part."""
_LEARNT, _LOST = 2.0**-40, 2.0**-20


@dataclass(frozen=True)
class Neighbourhood:
    """How far masks reach.

    Args:
        neighbours: k of every client.
        threshold: how many of them can lift its masks together.
    """

    neighbours: int
    threshold: int


@lru_cache(maxsize=64)
def neighbourhood(clients: int, survivors: int, wanted: int | None = None) -> Neighbourhood:
    """Enough neighbours for so many clients, of which `survivors` are left at least.

    Everybody, where that many clients are not there; the threshold is then more than half of all. A number that is
    asked for is taken as it is, with a threshold of more than half of it.
    """
    if clients < FEWEST:
        raise SettingError(f"masks hide a client among others: {clients} of them are too few; expected at least 3")
    everybody = Neighbourhood(clients - 1, max(1, min(clients // 2 + 1, survivors - 1)))
    if wanted is not None:
        if wanted % 2 or not 0 < wanted < clients:
            raise SettingError(
                f"neighbours={wanted}: a client has as many on either side; expected an even number below {clients}, "
                "the number of clients of a round"
            )
        return Neighbourhood(wanted, wanted // 2 + 1)
    with_server = int(COLLUDING * clients)
    for k in range(2, clients - 1, 2):
        colluding, left = (drawn(clients - 1, one, k) for one in (with_server, survivors - 1))
        apart = clients * ((with_server + clients - survivors) / clients) ** (k / 2)
        enough = [
            threshold
            for threshold in range(1, k + 1)
            if clients * sum(colluding[threshold:]) <= _LEARNT and clients * sum(left[:threshold]) <= _LOST
        ]
        if enough and apart <= _LEARNT:
            return Neighbourhood(k, enough[-1])
    return everybody


def drawn(total: int, marked: int, draws: int) -> list[float]:
    """P(H = 0), ..., P(H = draws), H how many of so many draws out of `total`, without putting back, are marked."""
    everything = _ways(total, draws)
    return [
        math.exp(_ways(marked, found) + _ways(total - marked, draws - found) - everything)
        if found <= marked and draws - found <= total - marked
        else 0.0
        for found in range(draws + 1)
    ]


def _ways(total: int, draws: int) -> float:
    """ln of the number of ways to draw so many."""
    return math.lgamma(total + 1) - math.lgamma(draws + 1) - math.lgamma(total - draws + 1)


def ring(clients: Sequence[int], neighbours: int, seed: int) -> dict[int, tuple[int, ...]]:
    """Every client's neighbours: the nearest on a ring in a random order; everybody else where they reach round it."""
    order = [clients[place] for place in np.random.default_rng(seed).permutation(len(clients))]
    if neighbours >= len(order) - 1:
        return {one: tuple(other for other in order if other != one) for one in order}
    steps = [step for step in range(-(neighbours // 2), neighbours // 2 + 1) if step]
    return {one: tuple(order[(place + step) % len(order)] for step in steps) for place, one in enumerate(order)}
