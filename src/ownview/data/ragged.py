"""Lists of different lengths, one per user, stored end to end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ownview.base.randomness import sort_keys
from ownview.data.interactions import IntArray


@dataclass(frozen=True, eq=False)
class Ragged:
    """values[offsets[u] : offsets[u + 1]] is user u's list.

    Args:
        offsets: [n + 1] int64, rising from 0.
        values: [total] int64.
    """

    offsets: Tensor
    values: Tensor

    @classmethod
    def from_pairs(cls, user: IntArray, value: IntArray, num_users: int) -> Ragged:
        """Group values by user; inside a user they keep their order."""
        order = np.argsort(user, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=num_users))])
        return cls(torch.from_numpy(offsets.astype(np.int64)), torch.from_numpy(value[order].astype(np.int64)))

    @classmethod
    def from_distinct_pairs(cls, user: IntArray, value: IntArray, num_users: int) -> Ragged:
        """Group values by user; inside a user they are distinct and ascending."""
        span = int(value.max()) + 1 if len(value) else 1
        pair = np.sort(user * span + value)
        pair = pair[np.concatenate([[True], pair[1:] != pair[:-1]])[: len(pair)]]  # np.unique takes 18 times as long
        return cls.from_pairs(pair // span, pair % span, num_users)

    @classmethod
    def one(cls, values: Tensor) -> Ragged:
        """The list of one user alone."""
        return cls(torch.tensor([0, len(values)], device=values.device), values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """[n] how long each user's list is."""
        return self.offsets[1:] - self.offsets[:-1]

    def lengths_of(self, users: Tensor) -> Tensor:
        """[B] how long the lists of some users are, found without a look at other lists."""
        return self.offsets[users + 1] - self.offsets[users]

    def host_lengths_of(self, users: Tensor) -> Tensor:
        """[B] the same for positions that are on the host: no GPU is waited for."""
        return self._host_offsets[users + 1] - self._host_offsets[users]

    @cached_property
    def _host_offsets(self) -> Tensor:
        return self.offsets.cpu()  # on a CPU these are the offsets themselves

    def of(self, user: int) -> Tensor:
        """One user's list."""
        return self.values[int(self.offsets[user]) : int(self.offsets[user + 1])]

    def padded(self, users: Tensor, longest: int | None = None) -> tuple[Tensor, Tensor]:
        """The lists of some users, side by side.

        Args:
            users: [B].
            longest: the length of the longest of these lists, for who knows it; else it is looked up, which on a GPU
                the host waits for.

        Returns:
            values [B, W] and mask [B, W], W the longest list (at least 1); padding repeats an arbitrary value.
        """
        start, length = self.offsets[users], self.lengths_of(users)
        if longest is None:
            longest = int(length.max()) if len(users) else 0
        width = max(longest, 1)
        column = torch.arange(width, device=users.device)
        values = self.values if len(self.values) else self.values.new_zeros(1)  # where every list is empty
        index = (start[:, None] + column).clamp(max=len(values) - 1)
        return values[index], column < length[:, None]

    def only(self, kept: Tensor) -> Ragged:
        """The lists of users for whom [n] is True; those of all others are empty."""
        lengths = torch.where(kept, self.lengths, 0)
        offsets = torch.cat([self.offsets[:1], lengths.cumsum(0)])
        return Ragged(offsets, self.values[torch.repeat_interleave(kept, self.lengths)])

    def same_items(self, other: Ragged) -> bool:
        """Whether every user's list holds the same values as in `other`, each as often, in any order."""
        if not torch.equal(self.offsets, other.offsets):
            return False
        owner = torch.repeat_interleave(torch.arange(len(self), device=self.values.device), self.lengths)
        span = 1 + max((int(one.values.max()) for one in (self, other) if len(one.values)), default=0)
        mine, theirs = (sort_keys(owner * span + one.values) for one in (self, other))
        return torch.equal(mine, theirs)

    def with_values(self, values: IntArray) -> Ragged:
        """Lists of the same lengths that hold other values: [total], user after user."""
        return Ragged(self.offsets, torch.from_numpy(values))

    def to(self, device: torch.device) -> Ragged:
        """The same lists on another device."""
        return Ragged(self.offsets.to(device), self.values.to(device))
