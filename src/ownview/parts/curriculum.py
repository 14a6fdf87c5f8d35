"""FedRAP's curricula: how the weights of its two penalties go with the rounds."""

from __future__ import annotations

import math

CURRICULA = ("tanh", "fixed", "none", "sin", "square", "frac", "sin-released", "square-released")


def strength(curriculum: str, number: int) -> float:
    """lambda(a) / v1 = mu(a) / v2 in round a.

    `fixed` is the paper's name for constants, `none` says what the released code does: it computes a curriculum and
    uses v1 and v2 all the same. The released forms are what it computes: 0 in the first round, then from 0 on
    (sin(0 / 10) + 1) / 2, which is never negative, and a square wave that begins with 1 and turns every five rounds.
    """
    return {
        "tanh": math.tanh(number / 10),
        "sin": math.sin(number / 10),
        "square": float(number // 10 % 2),
        "frac": 1 / (number + 1),
        "fixed": 1.0,
        "none": 1.0,
        "sin-released": (math.sin((number - 2) / 10) + 1) / 2 if number > 1 else 0.0,
        "square-released": float((number - 2) // 5 % 2 == 0) if number > 1 else 0.0,
    }[curriculum]
