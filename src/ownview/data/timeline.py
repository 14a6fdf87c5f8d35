"""Rows in time order: who counts as earlier where times are equal, and every user's history from oldest to latest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ownview.base.randomness import bits, derive
from ownview.data.interactions import IdArray, IntArray, Interactions
from ownview.data.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Timeline:
    """Every user's training items, oldest first.

    Args:
        items: the items of `Split.train`, repeats as often as there, in time order inside each user.
        times: the source's timestamps, aligned with `items`, or None where the order does not come from timestamps.
    """

    items: Ragged
    times: Ragged | None


def time_order(data: Interactions, clock: IntArray, *, ties: str, seed: int) -> IntArray:
    """[r] every row of the data, by user and inside each user from oldest to latest.

    Args:
        data: r rows.
        clock: [r] the timestamps, or what stands for them.
        ties: among equal times "file" takes the row that comes FIRST in the file for the latest (what
            rank(method="first", ascending=False) does); "hash" decides by `hash_of_pairs`.
        seed: of the hash.
    """
    breaker = -data.row if ties == "file" else hash_of_pairs(data, seed)
    return np.lexsort((breaker, clock, data.user))


def hash_of_pairs(data: Interactions, seed: int) -> IntArray:
    """A number for every row that depends on the ids and the seed: not on the file's order, nor on who was dropped."""
    user, item = torch.from_numpy(_hash_of_ids(data.users)), torch.from_numpy(_hash_of_ids(data.items))
    drawn = bits(derive(seed, "split"), user[torch.from_numpy(data.user)], item[torch.from_numpy(data.item.copy())])
    return drawn.numpy()


def _hash_of_ids(ids: IdArray) -> IntArray:
    return np.array([derive(0, f"id:{one}") for one in ids.tolist()], dtype=np.int64)
