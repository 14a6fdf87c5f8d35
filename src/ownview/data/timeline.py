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
    """Every user's items, oldest first.

    Args:
        items: in time order inside each user, repeats as often as they occurred.
        times: the source's timestamps, aligned with `items`, or None where the order does not come from timestamps.
        now: [n] by each user's own clock, in the unit of `times`; None without times.
    """

    items: Ragged
    times: Ragged | None = None
    now: torch.Tensor | None = None

    @property
    def last(self) -> torch.Tensor:
        """[n] the time of each user's last item, 0 for a user without any; with times alone."""
        assert self.times is not None
        ends = (self.items.offsets[1:] - 1).clamp(min=0)
        values = self.times.values if len(self.times.values) else self.times.values.new_zeros(1)
        return torch.where(self.items.lengths > 0, values[ends], 0)

    @property
    def at_its_end(self) -> Timeline:
        """The same lists at the time of each user's last item."""
        return self if self.times is None else Timeline(self.items, self.times, self.last)

    def to(self, device: torch.device) -> Timeline:
        """The same on a device."""
        times = None if self.times is None else self.times.to(device)
        return Timeline(self.items.to(device), times, None if self.now is None else self.now.to(device))

    def of(self, user: int) -> Timeline:
        """One user's alone."""
        times = None if self.times is None else Ragged.one(self.times.of(user))
        return Timeline(Ragged.one(self.items.of(user)), times, None if self.now is None else self.now[user : user + 1])


def time_order(data: Interactions, clock: IntArray, *, ties: str, seed: int) -> IntArray:
    """[r] every row of the data, by user and inside each user from oldest to latest.

    Args:
        data: r rows.
        clock: [r] the timestamps, or what stands for them.
        ties: among equal times "file" takes the row that comes FIRST in the file for the latest (what
            rank(method="first", ascending=False) does); "rows" takes the row that comes LAST, as in a file that grew
            with time; "hash" decides by `hash_of_pairs`.
        seed: of the hash.
    """

    def breaker(rows: slice | IntArray) -> IntArray:
        if ties == "hash":
            return hash_of_pairs(data, seed, rows)
        return data.row[rows] if ties == "rows" else -data.row[rows]

    first, last = (int(clock.min()), int(clock.max())) if len(clock) else (0, 0)
    if (last - first + 1) * data.num_users >= 2**62:
        return np.lexsort((breaker(slice(None)), clock, data.user))
    when = data.user * (last - first + 1) + (clock - first)  # user and time as one number: a sort less
    order = np.argsort(when, kind="stable")
    same = when[order[1:]] == when[order[:-1]]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))  # most files are in order but for these
    order[tied] = order[tied][np.lexsort((breaker(order[tied]), when[order[tied]]))]
    return order


def hash_of_pairs(data: Interactions, seed: int, rows: slice | IntArray = slice(None)) -> IntArray:
    """A number for every row, or some, by the ids and the seed: not by the file's order, nor by who was dropped."""
    user, item = _hash_of_ids(data.users)[data.user[rows]], _hash_of_ids(data.items)[data.item[rows]]
    return bits(derive(seed, "split"), torch.from_numpy(user), torch.from_numpy(item)).numpy()


def _hash_of_ids(ids: IdArray) -> IntArray:
    return np.array([derive(0, f"id:{one}") for one in ids.tolist()], dtype=np.int64)
