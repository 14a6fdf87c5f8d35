"""What clients know besides which items they have: ratings of their items, and facts about their users.

Both stay on the client: it sees only its own, and no message contains them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import entries_of
from ownview.base.randomness import derive
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.protection import Protection
from ownview.seam.training import World


@dataclass(frozen=True, eq=False)
class OwnFacts:
    """Facts of k clients.

    Args:
        rated: items of each that have a rating; None where the data has no ratings.
        ratings: [total] theirs, in the order of `rated`'s values.
        users: columns about the k users; None where nothing is known of them.
    """

    rated: Ragged | None = None
    ratings: Tensor | None = None
    users: ItemTable | None = None

    @classmethod
    def of(cls, split: Split) -> OwnFacts:
        """Facts of all clients of a split; a client sees its ratings of known items alone."""
        data = split.data
        if data.rating is None:
            return cls(users=data.about_users)
        rated = Ragged.from_pairs(data.user, data.item, data.num_users)
        return cls(rated, torch.from_numpy(data.rating.copy()), data.about_users)

    def part(self, here: range) -> OwnFacts:
        """Facts of a range of clients."""
        users = None if self.users is None else self.users.select(list(here))
        if self.rated is None or self.ratings is None:
            return OwnFacts(users=users)
        offsets = self.rated.offsets[here.start : here.stop + 1]
        cells = slice(int(offsets[0]), int(offsets[-1]))
        rated = Ragged(offsets - offsets[0], self.rated.values[cells].clone())
        return OwnFacts(rated, self.ratings[cells].clone(), users)

    def to(self, device: torch.device) -> OwnFacts:
        """On a device."""
        if self.rated is None or self.ratings is None:
            return self
        return replace(self, rated=self.rated.to(device), ratings=self.ratings.to(device))

    def table(self, clients: Tensor, seen: Tensor) -> Tensor:
        """[B, m] ratings of what is `seen` [B, m], 1 or 0; 0 for all else. A repeated item has its last rating."""
        if self.rated is None or self.ratings is None:
            return torch.zeros_like(seen)
        items, real = self.rated.padded(clients)
        cells = self.rated.offsets[clients][:, None] + torch.arange(items.shape[1], device=clients.device)
        values = self.ratings.to(seen)[cells.clamp(max=len(self.ratings) - 1)]
        whole = torch.zeros(len(clients), seen.shape[1] + 1, dtype=seen.dtype, device=seen.device)
        for place in range(items.shape[1]):  # one after the other, so that the last counts on every device
            target = torch.where(real[:, place], items[:, place], seen.shape[1])
            whole.scatter_(1, target[:, None], values[:, place, None])
        return whole[:, :-1] * seen

    def encoded(self, columns: tuple[str, ...], count: int, size: int) -> Tensor:
        """[count, size] float32: every user's values, put into `size` places by a hash that everybody has.

        An entry of a list or a word stands as 1 in the place of its column and itself, a number x as arcsinh(x) in that
        of its column, so that nothing has to be known of other users. 0 for users that nothing is known of.
        """
        found = torch.zeros(count, size)
        for name in columns if self.users is not None else ():
            assert self.users is not None
            for row, value in enumerate(self.users.columns[name]):
                for entry in entries_of(value):
                    number = _number(entry)
                    key = f"user feature {name}" if number is not None else f"user feature {name}: {entry}"
                    found[row, derive(0, key) % size] += 1.0 if number is None else math.asinh(number)
        return found


def world_of(split: Split, plan: Protection | None = None) -> World:
    """The `World` of a split, under a budget or none."""
    data = split.data
    columns = () if data.about_users is None else tuple(data.about_users.columns)
    known = data.about, split.num_new, columns, data.rating is not None
    return World(split.num_users, split.num_items, split.order, plan, *known)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
