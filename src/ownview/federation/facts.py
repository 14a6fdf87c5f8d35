"""What clients know besides which items they have: ratings and quantities of their items, and facts about their users.

Both stay on the client: it sees only its own, and no message contains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import entries_of
from ownview.base.randomness import derive
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.protection import Protection
from ownview.seam.roles import QUANTITIES, RATINGS, Param, Role
from ownview.seam.training import World


@dataclass(frozen=True, eq=False)
class OwnRows:
    """What k clients know of their rows besides the items, oldest first.

    Args:
        items: of every row.
        nth: [total] how many earlier rows of the same client have the same item.
        ratings: [total]; None where the data has none.
        quantities: [total]; None where the data has none, and every row counts 1.
    """

    items: Ragged
    nth: Tensor
    ratings: Tensor | None
    quantities: Tensor | None

    @classmethod
    def of(cls, data: Interactions) -> OwnRows | None:
        """Of all rows of some data; None where they say nothing but items."""
        if data.rating is None and data.quantity is None:
            return None
        clock = data.row if data.timestamp is None else data.timestamp
        order = np.lexsort((data.row, clock, data.user))
        pair = (data.user * data.num_items + data.item)[order]
        same = np.argsort(pair, kind="stable")
        starts = np.flatnonzero(np.append(True, pair[same][1:] != pair[same][:-1])[: len(pair)])
        nth = np.empty(len(pair), dtype=np.int64)
        nth[same] = np.arange(len(pair)) - np.repeat(starts, np.diff(np.append(starts, len(pair))))
        values = (None if one is None else torch.from_numpy(one[order]) for one in (data.rating, data.quantity))
        items = Ragged.from_pairs(data.user[order], data.item[order], data.num_users)
        return cls(items, torch.from_numpy(nth), *values)

    def part(self, here: range) -> OwnRows:
        """Of a range of clients, copied."""
        offsets = self.items.offsets[here.start : here.stop + 1]
        cells = slice(int(offsets[0]), int(offsets[-1]))
        return self._each(
            Ragged(offsets - offsets[0], self.items.values[cells].clone()), lambda one: one[cells].clone()
        )

    def to(self, device: torch.device) -> OwnRows:
        """On a device."""
        return self._each(self.items.to(device), lambda one: one.to(device))

    def _each(self, items: Ragged, change: Callable[[Tensor], Tensor]) -> OwnRows:
        values = (None if one is None else change(one) for one in (self.ratings, self.quantities))
        return OwnRows(items, change(self.nth), *values)

    def table(self, role: Role, clients: Tensor, counts: Tensor) -> Tensor | None:
        """[B, m] ratings, or sums of quantities, of the earliest counts [B, m] rows of every item; None without such.

        The rating is that of the latest of them. So a client sees nothing of rows that are held out.
        """
        values = self.ratings if role is RATINGS else self.quantities
        if values is None or not len(values):
            return None if values is None else torch.zeros_like(counts)
        items, real = self.items.padded(clients)
        cells = (self.items.offsets[clients][:, None] + torch.arange(items.shape[1], device=items.device)) * real
        nth, known = self.nth[cells], counts.gather(1, items)
        counted = real & ((nth + 1 == known) if role is RATINGS else (nth < known))
        return torch.zeros_like(counts).scatter_add_(1, items, values[cells].to(counts) * counted)


@dataclass(frozen=True, eq=False)
class OwnFacts:
    """Facts of k clients.

    Args:
        rows: about their rows; None where the data has neither ratings nor quantities.
        users: columns about the k users; None where nothing is known of them.
    """

    rows: OwnRows | None = None
    users: ItemTable | None = None

    @classmethod
    def of(cls, split: Split, params: Mapping[str, Param] | None = None) -> OwnFacts:
        """Facts of all clients of a split; a client sees those of rows that it knows alone.

        Args:
            split: the clients' data.
            params: what the clients have. Where none of them is made of rows, nothing is said of rows, for which all of
                them are sorted. All facts where None.
        """
        asked = params is None or any(param.role in (RATINGS, QUANTITIES) for param in params.values())
        return cls(OwnRows.of(split.data) if asked else None, split.data.about_users)

    def part(self, here: range) -> OwnFacts:
        """Facts of a range of clients."""
        users = None if self.users is None else self.users.select(list(here))
        return OwnFacts(None if self.rows is None else self.rows.part(here), users)

    def to(self, device: torch.device) -> OwnFacts:
        """On a device."""
        return replace(self, rows=None if self.rows is None else self.rows.to(device))

    def table(self, role: Role, clients: Tensor, counts: Tensor) -> Tensor:
        """[B, m] ratings or quantities by how often each item is known, counts [B, m]; 0 for all that are not.

        Without ratings there are zeros; without quantities every row counts 1.
        """
        found = None if self.rows is None else self.rows.table(role, clients, counts)
        if found is None:
            return torch.zeros_like(counts) if role is RATINGS else counts
        return found

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
