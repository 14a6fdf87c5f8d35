"""Results by activity: whether a method serves those who left few traces as well as those who left many.

A user's activity is the number of interactions in the filtered data, those held out included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ownview.base.errors import SettingError
from ownview.data.interactions import FloatArray, IntArray

_GROUPS = 4


class ActivityRange(NamedTuple):
    """Users with at least `fewest` and fewer than `below` interactions, written FEWEST:BELOW.

    Half open, because so PFedRec's paper counts its inactive users (Table 9): "20~30" are 199 users of ml-100k and 751
    of ml-1m, "5~20" are 641 of lastfm-2k-tags, repeated rows counted. With the upper end they would be 213, 809, 666.
    """

    fewest: int
    below: int

    @classmethod
    def parse(cls, text: str) -> ActivityRange:
        """Read 20:30."""
        found = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", str(text))
        if found is not None and int(found[1]) < int(found[2]):
            return cls(int(found[1]), int(found[2]))
        turned = "" if found is None or found[1] == found[2] else f"; did you mean '{found[2]}:{found[1]}'?"
        raise SettingError(
            f"setting inactive={text!r}: expected FEWEST:BELOW, users with at least FEWEST and fewer than BELOW "
            f"interactions, such as 20:30{turned}"
        )

    def __str__(self) -> str:
        return f"{self.fewest}:{self.below}"

    def members(self, interactions: IntArray) -> IntArray:
        """Places in `interactions` [k] of the users inside; a range without users is refused."""
        inside = np.flatnonzero((interactions >= self.fewest) & (interactions < self.below))
        if not len(inside):
            low, high = int(interactions.min()), int(interactions.max())
            raise SettingError(
                f"setting inactive='{self}': no ranked user has so many interactions; expected a range that meets "
                f"{low} to {high}, such as {low}:{max(low + 1, (low + high) // 2)}"
            )
        return inside


def quarters(interactions: IntArray) -> list[IntArray]:
    """Cut k >= 1 users into up to four groups by activity, the least active first.

    Users of equal activity are in one group: each of the three cuts is the change of activity nearest to a quarter of
    the users, the earlier of two that are as near. Where activity changes less often there are fewer groups.

    Args:
        interactions: [k] of each user, by position.

    Returns:
        places in `interactions`, by activity and then by position.
    """
    order = np.argsort(interactions, kind="stable")
    changes = np.flatnonzero(np.diff(interactions[order])) + 1
    if not len(changes):
        return [order]
    wanted = len(order) * np.arange(1, _GROUPS) / _GROUPS
    cuts = changes[np.abs(changes[None, :] - wanted[:, None]).argmin(axis=1)]
    return np.split(order, np.unique(cuts))


def by_activity(interactions: IntArray, values: Mapping[str, FloatArray]) -> list[dict[str, Any]]:
    """Mean metrics of the quarters.

    Args:
        interactions: [k] of each ranked user, by position.
        values: by metric [k], a value a user.
    """
    parts = quarters(interactions)
    labels = [f"group {number} of {len(parts)}" for number in range(1, len(parts) + 1)]
    return [summary(label, part, interactions, values) for label, part in zip(labels, parts, strict=True)]


def summary(label: str, members: IntArray, interactions: IntArray, values: Mapping[str, FloatArray]) -> dict[str, Any]:
    """One group as plain values.

    Args:
        label: what it is called.
        members: [g] places of its users, at least one.
        interactions: [k] of all users.
        values: by metric [k], a value a user.
    """
    mine = interactions[members]
    return {
        "label": label,
        "interactions": [int(mine.min()), int(mine.max())],
        "users": len(members),
        "test": {name: float(column[members].mean()) for name, column in values.items()},
    }
