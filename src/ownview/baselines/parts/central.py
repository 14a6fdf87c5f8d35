"""A recommender that sees everybody's data at once: what federated methods are held against."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ownview.config.settings import Settings
from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.parts.sequences.places import CROWDED
from ownview.seam.portable import Portable, Refusal
from ownview.seam.training import Params


class Asked(NamedTuple):
    """Whom a model is asked about, and what is known of them.

    Args:
        users: [B] positions in `known`; in the training split too, unless they are strangers to it.
        known: everybody's items that are known, oldest first.
        as_trained: whether they are those that the model was trained on.
    """

    users: Tensor
    known: Timeline
    as_trained: bool = True

    def history(self, num_items: int, like: Tensor) -> Tensor:
        """[B, m] 1 where a user is known to have the item."""
        items, real = self.known.items.padded(self.users)
        taken = like.new_zeros((len(self.users), num_items))
        row = torch.arange(len(self.users), device=self.users.device)[:, None].expand_as(items)
        taken[row[real], items[real]] = 1
        return taken

    def summed_rows(self, table: Tensor) -> Tensor:
        """[B, b] the sum of the rows of a table [m, b] of all items that a user is known to have, each once.

        On a CPU, where people have few of the items, those rows alone are read: a product with the whole table takes m
        multiplications a score, and most of them by 0.
        """
        known = self.known.items
        if table.device.type != "cpu" or CROWDED * len(known.values) > len(known) * len(table):
            return self.history(len(table), table) @ table
        items, real = known.padded(self.users)
        items = torch.where(real, items, -1).sort(dim=1).values
        once = (items >= 0) & (items != torch.nn.functional.pad(items[:, :-1], (1, 0), value=-1))
        counts = once.sum(1)
        return torch.nn.functional.embedding_bag(items[once], table, counts.cumsum(0) - counts, mode="sum")


@dataclass(frozen=True)
class Central(Settings):
    """One model for all users. What it learns is a dictionary of tensors, so that it can be saved plainly.

    A subclass is either `OneShot`, fitted in one round, or `InEpochs`, where a round is one epoch.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = "none: a control"
    federated: ClassVar[bool] = False
    by_history: ClassVar[bool] = False
    """Whether it scores from what is known of a user, so that it can be asked about users it never saw."""
    sends_nothing: ClassVar[bool] = False
    """Whether it is made of what is public about items, so that a device can do it alone."""
    speaks_of_new: ClassVar[bool] = False
    """Whether it scores items without interactions by itself; for all others text carries scores to them."""
    yardstick: ClassVar[bool] = False
    """Whether it counts and learns nothing of taste: what is not above it has not shown anything."""

    def require_packages(self) -> None:
        """Raise `SettingError` where a package that training needs is not installed."""

    def require(self, split: Split) -> None:
        """Raise `SettingError` where the data lacks what the model needs; asked before a run folder is made."""

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """Memory that training needs besides the data; 0 where it is not worth a thought."""
        return 0

    @abstractmethod
    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] scores of all items for the users that are asked about."""

    def portable(self, learned: Params) -> Portable:
        """The portable form of its scores; a refusal by default."""
        return Refusal()


@dataclass(frozen=True)
class OneShot(Central):
    """Fitted at once: there is no round to choose."""

    @abstractmethod
    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Learn from the training part of all users.

        Args:
            split: the data.
            excluded: every user's items that are never drawn as training negatives; the protocol says which.
            seed: equal seeds give equal values.
        """


@dataclass(frozen=True, eq=False)
class Lessons:
    """What a model learns from in every epoch, where it trains.

    Args:
        train: every user's training positives; repeats stand as often as the protocol keeps them.
        items: the distinct ones, ascending.
        timeline: the same in time order, with repeats; what is known of that a model asks of the split (`require`).
        excluded: every user's items that are never drawn as training negatives; the protocol says which.
        num_users: n.
        num_items: m.
        seed: equal seeds give equal values.
        names: [n] what errors call the users; their positions where None.
    """

    train: Ragged
    items: Ragged
    timeline: Timeline
    excluded: Ragged
    num_users: int
    num_items: int
    seed: int
    names: IdArray | None = None

    @classmethod
    def of(cls, split: Split, excluded: Ragged, seed: int, device: torch.device) -> Lessons:
        """The training part of a split, on the device."""
        train, items = split.train.to(device), split.training_items().to(device)
        line, excluded, names = split.timeline.to(device), excluded.to(device), split.data.users
        return cls(train, items, line, excluded, split.num_users, split.num_items, seed, names)

    @property
    def device(self) -> torch.device:
        """Device of the training data."""
        return self.train.values.device


@dataclass(frozen=True)
class InEpochs(Central):
    """Trained in rounds of one epoch each, so that validation chooses the epoch and a stopped run can go on.

    Everything that an epoch depends on besides the lessons and its number is in the values: parameters and the
    optimiser's memory. So values saved after an epoch are all that a resume needs.
    """

    @abstractmethod
    def start(self, lessons: Lessons) -> Params:
        """The values before the first epoch; the same on every device."""

    @abstractmethod
    def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
        """Pass over all samples once, number counting from 1, and change the values in place.

        Returns:
            the mean loss of a sample, each as it was when its turn came.
        """

    def learned(self, values: Params, lessons: Lessons) -> Params:
        """The argument of `scores`, from the values; by default the values themselves."""
        return values
