"""What releases have spent of the people in one of them: composed person by person, the worst of all counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.privacy.accountant import epsilon_together
from ownview.releases.entries import Mechanism

_PATTERNS = 256
"""Different sets of releases that are composed one by one; where people have more, all releases count for each."""


class Spent(NamedTuple):
    """By the person of whom most was released.

    epsilon:  of these releases together
    delta:    the smallest of theirs
    how:      it was found
    releases: places in the list that was asked about
    """

    epsilon: float
    delta: float
    how: str
    releases: tuple[int, ...]


NOTHING = Spent(0.0, 0.0, "nothing was released", ())


def spent(mechanisms: Sequence[Mechanism], members: npt.NDArray[np.bool_]) -> Spent:
    """The largest epsilon of any person.

    Args:
        mechanisms: of the k releases.
        members: [k, n] which release has which person.
    """
    found = [_composed(mechanisms, places) for places in _largest_sets(members)]
    return max(found, key=lambda one: one.epsilon, default=NOTHING)


def _composed(mechanisms: Sequence[Mechanism], places: tuple[int, ...]) -> Spent:
    chosen = [mechanisms[place] for place in places]
    delta = min(one.delta for one in chosen)
    if len(chosen) == 1:  # what is claimed is proved already
        return Spent(chosen[0].epsilon, delta, "one release", places)
    composed = epsilon_together([(one.noise, one.sampling) for one in chosen], delta)
    return Spent(composed.epsilon, delta, composed.how, places)


def _largest_sets(members: npt.NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Sets of releases that some person is in, but for those that are part of another such set."""
    if not members.any():
        return []
    packed = np.unique(np.packbits(members, axis=0), axis=1)
    columns = np.unpackbits(packed, axis=0, count=len(members)).T
    sets = sorted((frozenset(np.flatnonzero(one).tolist()) for one in columns), key=len, reverse=True)
    kept: list[frozenset[int]] = []
    for one in sets:
        if one and not any(one <= larger for larger in kept):
            kept.append(one)
            if len(kept) > _PATTERNS:
                return [tuple(np.flatnonzero(members.any(axis=1)).tolist())]
    return [tuple(sorted(one)) for one in kept]
