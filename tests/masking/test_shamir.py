"""Shares of secrets: enough of them give the secret back, one less gives nothing."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ownview.base.errors import MessageError
from ownview.masking.shamir import PRIME, SHARE, combined, shares


@given(
    secret=st.binary(min_size=32, max_size=32),
    places=st.lists(st.integers(1, 2**32), min_size=1, max_size=12, unique=True),
    data=st.data(),
)
def test_any_threshold_of_shares_gives_the_secret_back(secret: bytes, places: list[int], data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, len(places)))
    found = dict(zip(places, shares(secret, places, threshold, secrets.token_bytes), strict=True))
    chosen = data.draw(st.permutations(places))[:threshold]
    assert combined({place: found[place] for place in chosen}) == secret
    assert all(0 <= share < PRIME < 2 ** (8 * SHARE) for share in found.values())


@given(secret=st.binary(min_size=32, max_size=32), other=st.binary(min_size=32, max_size=32))
def test_one_share_less_fits_every_secret(secret: bytes, other: bytes) -> None:
    """Two shares of three: for any other secret there is a third share that would give that one."""
    first, second, _ = shares(secret, [1, 2, 3], 3, secrets.token_bytes)
    # The value at 0 of the polynomial through (1, a), (2, b), (3, c) is 3 a - 3 b + c.
    third = (int.from_bytes(other, "big") - 3 * first + 3 * second) % PRIME
    assert combined({1: first, 2: second, 3: third}) == other


def test_the_largest_secret_fits_and_what_does_not_belong_together_is_seen() -> None:
    largest = b"\xff" * 32
    assert combined(dict(enumerate(shares(largest, [1, 2], 2, secrets.token_bytes), start=1))) == largest
    with pytest.raises(MessageError, match="do not belong together"):
        combined({1: PRIME - 1})
    with pytest.raises(ValueError, match="distinct places"):
        shares(largest, [1, 1], 2, secrets.token_bytes)


def test_the_field_is_one() -> None:
    """Fermat's little theorem for many bases, and no small factor."""
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in range(2, 60))
    assert all(PRIME % small for small in range(2, 10_000))
    assert PRIME > 2**256
