"""Shares of a secret: any `threshold` of them give it back, fewer say nothing (Shamir 1979).

A secret s of 32 bytes is the value at 0 of a polynomial of degree threshold - 1 over the field of p = 2^256 + 297
elements, the smallest prime above all secrets; the other coefficients are random. The share at place x is the value
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ownview.base.errors import MessageError
from ownview.masking.primitives import SECRET, Entropy

PRIME = 2**256 + 297
SHARE = 33
"""Bytes of a share."""
_DRAWN = SHARE + 16
"""Bytes a coefficient is drawn from: what is left modulo p is uniform to 2^-128."""


def shares(secret: bytes, places: Sequence[int], threshold: int, entropy: Entropy) -> list[int]:
    """The value at every place.

    Args:
        secret: of 32 bytes.
        places: distinct, from 1.
        threshold: how many shares give the secret back, at most as many as there are.
        entropy: of the coefficients.
    """
    if len(secret) != SECRET or not 0 < threshold <= len(places) or min(places) < 1 or len(set(places)) < len(places):
        raise ValueError("a secret of 32 bytes, distinct places from 1, and a threshold of at most as many")
    drawn = entropy(_DRAWN * (threshold - 1))
    parts = (drawn[start : start + _DRAWN] for start in range(0, len(drawn), _DRAWN))
    highest_first = [*(int.from_bytes(part, "big") % PRIME for part in parts), int.from_bytes(secret, "big")]
    return [_value(highest_first, place) for place in places]


def combined(found: Mapping[int, int]) -> bytes:
    """The secret, from shares by place: s = sum_i y_i prod_{j != i} x_j / (x_j - x_i), modulo p.

    As many as the threshold must be given; from fewer, or from wrong ones, something else comes.
    """
    secret = 0
    for place, share in found.items():
        above = below = 1
        for other in found:
            if other != place:
                above, below = above * other % PRIME, below * (other - place) % PRIME
        secret += share * above * pow(below, -1, PRIME)
    secret %= PRIME
    if secret >> (8 * SECRET):
        raise MessageError("shares that do not belong together")
    return secret.to_bytes(SECRET, "big")


def _value(highest_first: Sequence[int], place: int) -> int:
    value = 0
    for coefficient in highest_first:
        value = (value * place + coefficient) % PRIME
    return value
