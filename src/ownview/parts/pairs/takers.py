"""A limit for items that few have taken: sums do not recommend them, so that as few people cannot either.

A sum over pairs of items counts who has taken an item, on its diagonal. One person adds at most 1 there, where what it
adds is bounded at all; an item of fewer than k takers is one that k people could have made up.

An item without weights scores 0, whatever liars send. It stays a candidate: where fewer items than a list has score
above 0, as after a history of one or two items, it stands above those that score below.
"""

from __future__ import annotations

from torch import Tensor

from ownview.base.errors import SettingError


def limited(weights: Tensor, counts: Tensor, takers: int) -> Tensor:
    """Weights [..., m], in place, with 0 for what speaks of items that fewer than `takers` have taken.

    Args:
        weights: of items (or of what else) for items.
        counts: [m] who has taken each; masks round them, so that half a person less is as good.
        takers: k; 0 changes nothing.
    """
    return weights.masked_fill_(counts < takers - 0.5, 0.0) if takers else weights


def require_counted(name: str, takers: int, why: str) -> None:
    """Refuse the setting where the server does not know who has taken what, with the reason."""
    if takers and why:
        raise SettingError(f"{name} setting takers={takers}: {why}; expected 0")
