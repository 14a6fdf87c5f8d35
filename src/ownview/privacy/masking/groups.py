"""Groups of a masked sum: each is opened by itself, and one that is unlike the others is left out.

A masked number or a share cannot be looked into, so a client can add whatever it likes. But clients are drawn into
several groups at random, and the mean contribution of every group is seen. It is compared with the median of all
groups, number by number; a group that is more than `FAR` times as far from it as the middle one, and farther than one
client within the clip can move it, does not count, nor do its members. Or the median itself counts. Both hold while
fewer than half of the groups have a liar in them, and neither sees numbers as small as honest ones.

What it costs: the server sees sums of fewer people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

FAR = 3.0
FEWEST_GROUPS = 3
"""Of two groups none is the odd one."""

Numbers = npt.NDArray[np.float64]


def drawn(units: Sequence[Sequence[int]], groups: int, shuffle: Callable[[list[int]], None]) -> list[list[int]]:
    """Clients in groups as equal as may be, at random; ascending in each.

    Args:
        units: clients that are drawn together, such as those of one place: if the place lies, it spoils one group.
        groups: how many.
        shuffle: puts a list into random order.
    """
    order = list(range(len(units)))
    shuffle(order)
    found: list[list[int]] = [[] for _ in range(groups)]
    for unit in sorted(order, key=lambda one: -len(units[one])):  # a stable sort: those of one size stay shuffled
        min(found, key=len).extend(units[unit])
    return [sorted(one) for one in found]


def distances(means: Iterable[Numbers]) -> Numbers:
    """[g] how far the mean contribution of every group is from the median of all, in the Euclidean norm.

    Args:
        means: [g, n] of the groups; some of the numbers after the others.
    """
    squares: Numbers = np.sqrt(sum(np.square(part - np.median(part, axis=0)).sum(axis=1) for part in means))
    return squares


def farthest(apart: Numbers, least: Numbers | float = 0.0) -> Numbers:
    """[g] how far from the median every group may be and still count.

    Args:
        apart: [g] distances.
        least: [g] what is never too far: where clients report once and then send zeros, the middle group is at 0.
    """
    limits: Numbers = np.maximum(np.full_like(apart, FAR * np.median(apart)), least)
    return limits


def alike(apart: Numbers) -> npt.NDArray[np.bool_]:
    """[g] which groups count, by their distances; always more than half of them."""
    kept: npt.NDArray[np.bool_] = apart <= farthest(apart)
    return kept
