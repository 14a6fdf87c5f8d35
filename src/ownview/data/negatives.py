"""Training negatives: uniform over what a client may take for not liked, distinct for one positive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ownview.base.errors import DataError
from ownview.base.randomness import below, bits
from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged

_LISTED_BYTES = 64 * 10**6
"""What a list of everybody's allowed items may take; where it would take more, items are searched for."""


class NegativeSampler:
    """Draws items outside each user's excluded list, without rejection.

    The r-th item outside the ascending list e_0 < e_1 < ... is r + #{j : e_j - j <= r}, so one uniform draw below
    the number of allowed items and one binary search give an exactly uniform item. On a CPU with few users and items,
    all allowed items are listed once instead of searched for.

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
        self,
        key: int | Tensor,
        users: Tensor,
        positives: int,
        identities: Tensor | None = None,
        longest: int | None = None,
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
        if self._listed is not None:
            return self._listed.items(users, ranks)
        listed, real = self.excluded.padded(users, longest)
        shifted = listed - torch.arange(listed.shape[1], device=users.device)
        shifted = torch.where(real, shifted, self.num_items)  # beyond every rank, so padding never counts
        flat = ranks.reshape(len(users), -1)
        return (flat + torch.searchsorted(shifted, flat, right=True)).reshape(ranks.shape)

    @cached_property
    def _listed(self) -> _Allowed | None:
        """The items that each user may draw, where there is room for them; a GPU searches as fast."""
        size = 2 if self.num_items <= 2**15 else 4
        fits = len(self.excluded) * self.num_items * size <= _LISTED_BYTES
        return (
            _Allowed.of(self.excluded, self.num_items) if fits and self.excluded.values.device.type == "cpu" else None
        )

    def _distinct_ranks(self, key: int | Tensor, users: Tensor, positives: int, identities: Tensor) -> Tensor:
        """Ranks below the number of allowed items, without repetition inside the last axis.

        The k-th draw is uniform below (allowed - k) and steps over the k ranks drawn before it.
        """
        allowed = (self.num_items - self.excluded.lengths_of(users))[:, None, None]
        order = torch.arange(self.per_positive, device=users.device)[:, None]
        counters = torch.arange(positives, device=users.device) * self.per_positive + order
        free = below(bits(key, identities[:, None, None], counters), allowed - order)  # [B, per_positive, positives]
        drawn: list[Tensor] = []
        ascending: list[Tensor] = []
        for k, rank in enumerate(free.unbind(1)):
            for earlier in ascending:
                rank = rank + (rank >= earlier)  # noqa: PLW2901
            drawn.append(rank)
            if k + 1 < self.per_positive:
                _insert(ascending, rank)
        return torch.stack(drawn, dim=-1)


@dataclass(frozen=True, eq=False)
class _Allowed:
    """values[offsets[u] + r] is the r-th item that user u may draw; in as few bytes as an item takes."""

    offsets: Tensor
    values: Tensor

    @classmethod
    def of(cls, excluded: Ragged, num_items: int) -> _Allowed:
        allowed = torch.ones(len(excluded), num_items, dtype=torch.bool)
        allowed[torch.repeat_interleave(excluded.lengths), excluded.values] = False
        small = torch.int16 if num_items <= 2**15 else torch.int32
        every = torch.arange(num_items, dtype=small).expand(len(excluded), num_items)
        counts = allowed.sum(1)
        return cls(counts.cumsum(0) - counts, every[allowed])

    def items(self, users: Tensor, ranks: Tensor) -> Tensor:
        """[B, ...] the items of users [B] with ranks [B, ...]."""
        first = self.offsets[users].reshape(-1, *[1] * (ranks.dim() - 1))
        return self.values.index_select(0, (ranks + first).reshape(-1)).long().reshape(ranks.shape)


def _insert(ascending: list[Tensor], new: Tensor) -> None:
    """Put a number into each of many ascending lists, whose k-th numbers are `ascending[k]`.

    By comparisons alone: sorting millions of lists of three numbers takes a GPU far longer.
    """
    for place, held in enumerate(ascending):
        ascending[place], new = torch.minimum(held, new), torch.maximum(held, new)
    ascending.append(new)
