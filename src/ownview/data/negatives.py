"""Training negatives: uniform over what a client may take for not liked, distinct for one positive."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.base.errors import DataError
from ownview.base.randomness import below, bits
from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged


class NegativeSampler:
    """Draws items outside each user's excluded list, without rejection.

    The r-th item outside the ascending list e_0 < e_1 < ... is r + #{j : e_j - j <= r}, so one uniform draw below
    the number of allowed items and one binary search give an exactly uniform item.

    Args:
        excluded: [n lists] items each user must never draw, distinct and ascending.
        num_items: items in the universe.
        per_positive: negatives drawn for each positive.
        names: [n] what errors call the users; their positions where None.

    Raises:
        DataError: a user leaves fewer items than `per_positive`.
    """

    def __init__(self, excluded: Ragged, num_items: int, per_positive: int, names: IdArray | None = None) -> None:
        allowed = num_items - excluded.lengths
        if len(excluded) and int(allowed.min()) < per_positive:
            user = int(allowed.argmin())
            named = f"at position {user}" if names is None else str(names[user])
            raise DataError(
                f"user {named} leaves only {int(allowed[user])} of {num_items} items to draw negatives "
                f"from; expected at least {per_positive}: lower the setting negatives or drop the user"
            )
        self.excluded, self.num_items, self.per_positive = excluded, num_items, per_positive

    def draw(
        self, key: int, users: Tensor, positives: int, identities: Tensor | None = None, longest: int | None = None
    ) -> Tensor:
        """[B, positives, per_positive] item positions; for each positive they are distinct.

        Args:
            key: of this round, from `ownview.base.randomness.derive`.
            users: [B] positions of their lists in `excluded`.
            positives: the number of positives of the longest user (padding included).
            identities: [B] who the users are to the randomness; their positions where None. A client that is alone
                on its device draws what it draws among all others, once it brings the identity it has there.
            longest: the length of the longest excluded list of these users; looked up where None.
        """
        ranks = self._distinct_ranks(key, users, positives, users if identities is None else identities)
        listed, real = self.excluded.padded(users, longest)
        shifted = listed - torch.arange(listed.shape[1], device=users.device)
        shifted = torch.where(real, shifted, self.num_items)  # beyond every rank, so padding never counts
        flat = ranks.reshape(len(users), -1)
        return (flat + torch.searchsorted(shifted, flat, right=True)).reshape(ranks.shape)

    def _distinct_ranks(self, key: int, users: Tensor, positives: int, identities: Tensor) -> Tensor:
        """Ranks below the number of allowed items, without repetition inside the last axis.

        The k-th draw is uniform below (allowed - k) and steps over the k ranks drawn before it.
        """
        allowed = (self.num_items - self.excluded.lengths_of(users))[:, None]
        position = torch.arange(positives, device=users.device)[None, :]
        drawn: list[Tensor] = []
        ascending: list[Tensor] = []
        for k in range(self.per_positive):
            rank = below(bits(key, identities[:, None], position * self.per_positive + k), allowed - k)
            for earlier in ascending:
                rank = rank + (rank >= earlier)
            drawn.append(rank)
            if k + 1 < self.per_positive:
                _insert(ascending, rank)
        return torch.stack(drawn, dim=-1)


def _insert(ascending: list[Tensor], new: Tensor) -> None:
    """Put a number into each of many ascending lists, whose k-th numbers are `ascending[k]`.

    By comparisons alone: sorting millions of lists of three numbers takes a GPU far longer.
    """
    for place, held in enumerate(ascending):
        ascending[place], new = torch.minimum(held, new), torch.maximum(held, new)
    ascending.append(new)
