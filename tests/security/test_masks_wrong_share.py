"""A wrong share is found out and named, and the sum is made of the others' where they are enough.

Before, a wrong share of a seed went unnoticed: the sum was off by random numbers, and nothing said so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ownview.base.errors import MessageError, TrainingError
from ownview.privacy.masking.cohort import cohort
from ownview.privacy.masking.device import MaskingClient
from ownview.privacy.masking.exchange import drawn_from_seed
from ownview.privacy.masking.messages import Introduction, SealedShares, Shares
from tests.security.masked_round import COUNT, NUMBER, Round


class _OtherSeed(MaskingClient):
    """Gives the check of one seed, and deals shares of another."""

    def _require_agreed(self, introduction: Introduction) -> None:
        super()._require_agreed(introduction)
        self._seed = bytes(32)


def _wrong(shown: Shares) -> Shares:
    spoilt = {client: bytes([share[0] ^ 1]) + share[1:] for client, share in shown.seeds.items()}
    return replace(shown, seeds=spoilt)


def _all_shown(one: Round) -> list[Shares]:
    return [one.devices[client].show(left) for client, left in one.server.left().items()]


def test_who_shows_wrong_shares_is_named_and_the_sum_is_right() -> None:
    one = Round(cohort(12, 9))
    total = one.arrive(range(11))  # one drops out, so that there are shares of a key too
    shown = _all_shown(one)
    shown[0], shown[4] = _wrong(shown[0]), _wrong(shown[4])
    assert np.array_equal(total - one.server.masks_left(shown, COUNT), one.plain(range(11)))
    assert one.server.wrong == {0: set(range(11)), 4: set(range(11))}


def test_wrong_shares_of_keys_are_named_too() -> None:
    one = Round(cohort(12, 9))
    total = one.arrive(range(11))
    shown = _all_shown(one)
    shown[2] = replace(shown[2], keys={11: bytes(36)})
    assert np.array_equal(total - one.server.masks_left(shown, COUNT), one.plain(range(11)))
    assert one.server.wrong == {2: {11}}


def test_with_too_few_right_shares_nothing_is_released() -> None:
    one = Round(cohort(12, 9))
    one.arrive(range(10))
    shown = _all_shown(one)
    with pytest.raises(
        TrainingError, match="8 shares of client 0, and 9 are needed; wrong ones came from clients 0, 1"
    ):
        one.server.masks_left([_wrong(shown[0]), _wrong(shown[1]), *shown[2:]], COUNT)


def test_a_client_whose_shares_are_not_of_its_seed_is_named() -> None:
    """It deals shares of another seed than it gave the check of; those who hold them have done nothing wrong."""
    one = Round(cohort(6, 4), {5: _OtherSeed})
    one.arrive(range(6))
    with pytest.raises(TrainingError, match="client 5 has dealt shares that are not of its seed"):
        one.server.masks_left(_all_shown(one), COUNT)
    assert one.server.wrong == {}


def test_nobody_can_be_blamed_for_a_share_that_was_dealt_wrongly() -> None:
    """A dealer that seals another share than the server has the check of is refused by who gets it."""
    one = Round(cohort(6, 4))
    boxes = one.inboxes[2].boxes
    swapped = {**boxes, 3: boxes[3]._replace(seed=boxes[4].seed)}
    again = MaskingClient(2, NUMBER, one.cohort, drawn_from_seed(9, 3, 2))
    again.shares(Introduction(NUMBER, 2, tuple(one.server.keys[client] for client in one.server.order)))
    with pytest.raises(MessageError, match="client 2: client 3 has sealed other shares than it gave checks of"):
        again.masks(SealedShares(NUMBER, 2, swapped), COUNT)
