"""A recommender that sees everybody's data at once: what federated methods are held against."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.settings import Settings
from ownview.types import Params


@dataclass(frozen=True)
class Central(Settings):
    """One model for all users. What it learns is a dictionary of tensors, so that it can be saved plainly."""

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    federated: ClassVar[bool] = False

    @abstractmethod
    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Learn from the training part of all users.

        Args:
            split: the data.
            excluded: every user's items that are never drawn as training negatives; the protocol says which.
            seed: equal seeds give equal values.
        """

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """Memory that fitting needs besides the data; 0 where it is not worth a thought."""
        return 0

    @abstractmethod
    def scores(self, learned: Params, users: Tensor) -> Tensor:
        """[B, m] scores of all items for `users` [B]."""
