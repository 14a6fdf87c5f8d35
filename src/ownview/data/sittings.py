"""Sittings: stretches of a user's history without a pause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ownview.base.errors import SettingError
from ownview.data.interactions import IntArray
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


def require_times(name: str, order: str) -> None:
    """Refuse data without times: a model that asks when things happened has nothing to go by."""
    if order != "times":
        raise SettingError(f"{name} needs to know when things happened, and the data has no times; expected timestamps")
