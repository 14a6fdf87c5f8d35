"""Sittings: stretches of a user's history without a pause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ownview.base.errors import SettingError
from ownview.data.interactions import IntArray
from ownview.data.splits import Split
from ownview.data.timeline import Timeline

DAY = 86_400
"""Seconds: timestamps are in seconds."""


@dataclass(frozen=True, eq=False)
class Sittings:
    """Everybody's training items in time order, cut into sittings.

    Args:
        items: [r] user after user, oldest first.
        begins: [r] True where a sitting begins: a user's first item, and what follows a pause.
        returns: [r] True for all items of sittings that follow a pause.
        lengths: [r] how many items the sitting of each has.
    """

    items: IntArray
    begins: npt.NDArray[np.bool_]
    returns: npt.NDArray[np.bool_]
    lengths: IntArray

    @classmethod
    def of(cls, line: Timeline, pause: int) -> Sittings:
        """Cut where more than `pause` seconds lie between two items of a user."""
        assert line.times is not None
        times = line.times.values.numpy()
        first = np.zeros(len(times), dtype=bool)
        lengths = line.items.lengths.numpy()
        first[line.items.offsets.numpy()[:-1][lengths > 0]] = True
        after_pause = np.concatenate([[False], np.diff(times) > pause]) & ~first
        begins = first | after_pause
        sitting = np.cumsum(begins) - 1
        return cls(line.items.values.numpy(), begins, after_pause[begins][sitting], np.bincount(sitting)[sitting])


def require_times(split: Split, wanted_by: str) -> Timeline:
    """The timeline of data with times; others are refused."""
    if split.order != "times":
        raise SettingError(f"{wanted_by} needs to know when things happened, and {split.data.name} has no times")
    return split.timeline


def require_order(split: Split, wanted_by: str) -> Timeline:
    """The timeline of data whose order is known; others are refused."""
    if split.order == "none":
        raise SettingError(
            f"{wanted_by} needs the order of a user's items, and {split.data.name} has no times; if its rows are in "
            "time order, say so with the protocol setting untimed = rows, or take protocol sequential"
        )
    return split.timeline
