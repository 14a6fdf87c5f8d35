"""Shares of a secret: any `threshold` of them give it back, fewer say nothing (Shamir 1979).

A secret of 32 bytes is nine numbers of 29 bits. Each is the value at 0 of a polynomial of its own, of degree
threshold - 1 over the field of p = 2^31 - 1 elements, whose other coefficients are random; the share at place x is the
nine values there. The field is small so that numpy works out the shares of a thousand places at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ownview.base.errors import MessageError
from ownview.privacy.masking.primitives import SECRET, Entropy

PRIME = 2**31 - 1
LAST_PLACE = 2**30
"""The largest place: a product with it, reduced once, stays within 64 bits."""

_BITS, _NUMBERS = 29, 9
SHARE = 4 * _NUMBERS
"""Bytes of a share."""

_Numbers = npt.NDArray[np.uint64]


def shares(secret: bytes, places: Sequence[int], threshold: int, entropy: Entropy) -> list[bytes]:
    """The share at every place.

    Args:
        secret: of 32 bytes.
        places: distinct, from 1 to `LAST_PLACE`.
        threshold: how many shares give the secret back, at most as many as there are.
        entropy: of the coefficients.
    """
    if len(secret) != SECRET or not 0 < threshold <= len(places) or len(set(places)) < len(places):
        raise ValueError("a secret of 32 bytes, distinct places, and a threshold of at most as many")
    if not 1 <= min(places) <= max(places) <= LAST_PLACE:
        raise ValueError(f"places from 1 to {LAST_PLACE}")
    at = np.array(places, dtype=np.uint64)[:, None]
    values = np.zeros((len(places), _NUMBERS), dtype=np.uint64)
    for coefficient in (*_drawn(threshold - 1, entropy), _cut(secret)):  # Horner's rule, the highest first
        values *= at
        values += coefficient
        above = values >> np.uint64(31)  # 2^31 = 1 modulo p
        values &= np.uint64(PRIME)
        values += above
    values %= np.uint64(PRIME)
    return [row.tobytes() for row in values.astype("<u4")]


def combined(found: Mapping[int, bytes]) -> bytes:
    """The secret, from shares by place: s = sum_i y_i prod_{j != i} x_j / (x_j - x_i), modulo p.

    Give as many shares as the threshold; fewer or wrong ones give another value, without an error.
    """
    given = np.frombuffer(b"".join(found.values()), dtype="<u4").reshape(len(found), _NUMBERS).astype(np.uint64)
    products = _weights(tuple(found))[:, None] * (given % np.uint64(PRIME)) % np.uint64(PRIME)
    numbers = [int(one) % PRIME for one in products.sum(0, dtype=np.uint64)]
    secret = sum(number << (_BITS * place) for place, number in enumerate(numbers))
    if max(numbers) >> _BITS or secret >> (8 * SECRET):
        raise MessageError("shares that do not belong together")
    return secret.to_bytes(SECRET, "big")


def _cut(secret: bytes) -> _Numbers:
    """[9] the secret's numbers, the lowest first."""
    whole = int.from_bytes(secret, "big")
    return np.array([(whole >> (_BITS * place)) & (2**_BITS - 1) for place in range(_NUMBERS)], dtype=np.uint64)


def _drawn(count: int, entropy: Entropy) -> _Numbers:
    """[count, 9] uniform numbers below p: 31 random bits each, drawn again where they are p itself."""
    numbers = _bits(count * _NUMBERS, entropy)
    while (unfit := numbers == PRIME).any():
        numbers[unfit] = _bits(int(unfit.sum()), entropy)
    return numbers.reshape(count, _NUMBERS)


def _bits(count: int, entropy: Entropy) -> _Numbers:
    return np.frombuffer(entropy(4 * count), dtype="<u4").astype(np.uint64) & np.uint64(PRIME)


@lru_cache(maxsize=8)
def _weights(places: tuple[int, ...]) -> _Numbers:
    """[t] Lagrange weights of the shares at these places; cached, as all secrets of a round need the same."""
    at, prime = np.array(places, dtype=np.uint64), np.uint64(PRIME)
    below, above = at.copy(), 1
    for index, place in enumerate(places):
        apart = (np.uint64(place) + prime - at) % prime
        apart[index] = 1
        below = below * apart % prime
        above = above * place % PRIME
    return np.array([above * pow(int(one), -1, PRIME) % PRIME for one in below], dtype=np.uint64)
