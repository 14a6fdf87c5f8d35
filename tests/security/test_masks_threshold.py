"""A server that has the shares of fewer than T clients lifts no mask.

Before, shares gave a secret back at little more than half of a client's neighbours (28 of 48 in a round of 100), while
the page promised T = 80: with 79 answers it said "nothing is released", and the server could compute the sum by itself.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ownview.base.errors import MessageError, TrainingError
from ownview.privacy.masking.cohort import Cohort, cohort
from ownview.privacy.masking.device import place_of, seed_check
from ownview.privacy.masking.messages import Left, Shares
from ownview.privacy.masking.shamir import combined
from tests.security.masked_round import COUNT, NUMBER, Round


def _shown(one: Round, arrived: range, showing: range) -> list[Shares]:
    there = {client: client in arrived for client in one.devices}
    return [one.devices[client].show(Left(NUMBER, client, there)) for client in showing]


def _seed(one: Round, client: int, shown: list[Shares]) -> bool:
    """Whether these shares give a client's seed."""
    try:
        secret = combined({place_of(holder.client): holder.seeds[client] for holder in shown})
    except MessageError:
        return False
    return seed_check(NUMBER, client, secret) == one.server.keys[client].seed


def test_the_shares_of_one_client_less_than_the_threshold_give_no_seed() -> None:
    one = Round(cohort(50, 40))
    total = one.arrive(range(50))
    shown = _shown(one, range(50), range(40))
    assert not any(_seed(one, client, shown[:39]) for client in range(50))
    # Half of all, which was enough before, and any other 39 of 40.
    assert not any(_seed(one, client, shown[:26]) for client in range(50))
    assert not any(_seed(one, 7, [*shown[:left], *shown[left + 1 :]]) for left in range(40))
    with pytest.raises(TrainingError, match="39 clients showed shares, and 40 are needed; nothing is released"):
        one.server.masks_left(shown[:39], COUNT)
    assert _seed(one, 7, shown)
    assert np.array_equal(total - one.server.masks_left(shown, COUNT), one.plain(range(50)))


def test_no_set_of_fewer_clients_gives_a_seed_and_every_set_of_as_many_does() -> None:
    one = Round(cohort(6, 4))
    one.arrive(range(6))
    shown = _shown(one, range(6), range(6))
    for size in range(1, 5):
        for some in combinations(shown, size):
            assert all(_seed(one, client, list(some)) == (size == 4) for client in range(6))


def test_clients_show_nothing_where_fewer_than_the_threshold_have_arrived() -> None:
    """A server that does not look at T itself is told by every client that it does."""
    one = Round(cohort(10, 8))
    for client in range(7):
        with pytest.raises(TrainingError, match="7 clients are left, and 8 are needed; no share is shown"):
            _shown(one, range(7), range(client, client + 1))


def test_a_client_is_not_singled_out_by_saying_that_its_neighbours_dropped_out() -> None:
    """On a ring the keys of a client's k neighbours lift its pairwise masks, and T of the others its own.

    Everybody is told the order of the ring, and shows nothing where so many in a row are missing.
    """
    agreed = Cohort(30, 20, 8)  # with so few neighbours that all of them can be missing, and T are left
    one = Round(agreed)
    alone = set(agreed.of(7, one.server.order))
    there = {client: client not in alone for client in one.devices}
    assert sum(there.values()) >= agreed.survivors
    for client in (client for client, arrived in there.items() if arrived):
        with pytest.raises(TrainingError, match="in a row are missing"):
            one.devices[client].show(Left(NUMBER, client, there))
