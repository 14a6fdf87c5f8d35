"""How much of what the next batch may hold, group by group, so that it can always be opened.

A sum of 32 bits has room for so many messages. If messages that change or take out could fill it, or contributions that
are taken out at once, a batch would be full and never have the contributions that open it: one tab could stop all.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from ownview.one_message.envelope import Operation


class BatchRoom:
    """Messages of a batch, counted.

    Args:
        groups: that are opened one by one.
        most: messages of a group.
    """

    def __init__(self, groups: int, most: int) -> None:
        self.most = most
        self.adding, self.others = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)

    def takes(self, operation: int, group: int) -> bool:
        """Whether a message fits; it is counted where it does.

        At most a quarter of a group's messages change or take out, and at most half of them add beyond as many as
        those: adding ones alone are always let in until half of the room is of contributions that count.
        """
        here = self.adding if operation == Operation.ADD else self.others
        if here is self.others:
            fits = self.others[group] < self.most // 4
        else:
            fits = self.adding[group] - self.others[group] < self.most // 2
        here[group] += bool(fits)
        return bool(fits)

    def count(self, operation: int, group: int) -> None:
        """Count a message that the batch has already."""
        (self.adding if operation == Operation.ADD else self.others)[group] += 1

    def copied(self) -> Self:
        """To try what would fit."""
        return copy.deepcopy(self)
