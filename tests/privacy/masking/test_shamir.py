"""Shares of secrets: enough of them give the secret back, one less gives nothing."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ownview.base.errors import MessageError
from ownview.privacy.masking.shamir import LAST_PLACE, PRIME, SHARE, combined, shares


@given(
    secret=st.binary(min_size=32, max_size=32),
    places=st.lists(st.integers(1, LAST_PLACE), min_size=1, max_size=12, unique=True),
    data=st.data(),
)
def test_any_threshold_of_shares_gives_the_secret_back(secret: bytes, places: list[int], data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, len(places)))
    found = dict(zip(places, shares(secret, places, threshold, secrets.token_bytes), strict=True))
    chosen = data.draw(st.permutations(places))[:threshold]
    assert combined({place: found[place] for place in chosen}) == secret
    assert all(len(share) == SHARE and bool((_numbers(share) < PRIME).all()) for share in found.values())


@given(st.binary(min_size=9 * 4 * 5, max_size=9 * 4 * 5), st.lists(st.integers(1, LAST_PLACE), min_size=6, unique=True))
@example(b"\xfe\xff\xff\x7f" * 45, [LAST_PLACE - k for k in range(6)])
def test_shares_are_values_of_a_polynomial(drawn: bytes, places: list[int]) -> None:
    """Against whole numbers of any size: nothing overflows, whatever the coefficients and the places are."""
    coefficients = (np.frombuffer(drawn, dtype="<u4") & PRIME).astype(object).reshape(5, 9)
    if (coefficients == PRIME).any():
        return
    found = shares(bytes(32), places, 6, lambda count: drawn)
    for place, share in zip(places, found, strict=True):
        expected = sum(coefficients[k] * place ** (5 - k) for k in range(5)) % PRIME
        assert _numbers(share).tolist() == expected.tolist()


@given(secret=st.binary(min_size=32, max_size=32), other=st.binary(min_size=32, max_size=32))
def test_one_share_less_fits_every_secret(secret: bytes, other: bytes) -> None:
    """Two shares of three: for any other secret there is a third share that would give that one."""
    first, second, _ = (_numbers(share) for share in shares(secret, [1, 2, 3], 3, secrets.token_bytes))
    of_other = int.from_bytes(other, "big")
    cut = np.array([(of_other >> (29 * place)) % 2**29 for place in range(9)], dtype=object)
    # The value at 0 of the polynomial through (1, a), (2, b), (3, c) is 3 a - 3 b + c.
    third = (cut - 3 * first + 3 * second) % PRIME
    found = {place: one.astype("<u4").tobytes() for place, one in enumerate((first, second, third), start=1)}
    assert combined(found) == other


def test_the_largest_secret_fits_and_what_does_not_belong_together_is_seen() -> None:
    largest = b"\xff" * 32
    assert combined(dict(enumerate(shares(largest, [1, 2], 2, secrets.token_bytes), start=1))) == largest
    with pytest.raises(MessageError, match="do not belong together"):
        combined({1: (PRIME - 1).to_bytes(4, "little") * 9})
    with pytest.raises(ValueError, match="distinct places"):
        shares(largest, [1, 1], 2, secrets.token_bytes)
    with pytest.raises(ValueError, match="places from 1"):
        shares(largest, [0, 1], 2, secrets.token_bytes)


def test_coefficients_are_drawn_again_where_they_are_no_element_of_the_field() -> None:
    drawn = iter([b"\xff" * 36, bytes(32) + b"\xff" * 4, bytes(4)])
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return next(drawn)

    assert shares(bytes(32), [1, 2], 2, entropy) == [bytes(36)] * 2
    assert asked == [36, 36, 4]


def _numbers(share: bytes) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    return np.frombuffer(share, dtype="<u4").astype(object)
