"""What an attack says: a guess about items, a guess about private values, or why it has nothing to go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class ItemGuess:
    """Which items are whose.

    Args:
        clients: [C] whom it is about.
        claimed: [C, m] the items that the attack says the client has.
        scores: [C, m] how likely it thinks each is; the higher, the likelier.
    """

    clients: Tensor
    claimed: Tensor
    scores: Tensor


@dataclass(frozen=True, eq=False)
class VectorGuess:
    """Directions of private values; their sign and length stay open.

    Args:
        clients: [C] whom it is about.
        directions: by the number of values d, [C, d].
    """

    clients: Tensor
    directions: Mapping[int, Tensor]


@dataclass(frozen=True)
class Inapplicable:
    """An attack that has nothing to go by, and why."""

    why: str
