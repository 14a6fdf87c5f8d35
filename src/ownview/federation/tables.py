"""Personal item tables: a common table underneath, and on top the rows a client has changed."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.data.ragged import Ragged


class PersonalTables:
    """One table per client, stored as a base and an overlay of changed rows.

    `values` is allocated but not written: the operating system commits a page only when a row in it is first
    changed. A base is the common initial table, or the global table of the round in which the client last took part.

    Args:
        num_clients: n.
        base: [m, ...] the table under everybody's overlay at first.
    """

    def __init__(self, num_clients: int, base: Tensor) -> None:
        n, m = num_clients, base.shape[0]
        # One row more than there are: padding is written there and never read.
        self.values = torch.empty((n * m + 1, *base.shape[1:]), dtype=base.dtype, device=base.device)
        self.changed = torch.zeros(n * m + 1, dtype=torch.bool, device=base.device)
        self.num_items = m
        self.bases = {0: base}
        self.base_of = torch.zeros(num_clients, dtype=torch.long, device=base.device)

    def take(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R, ...] the rows of `items` [B, R] in each client's table."""
        place = self._places(clients, items)
        own = self.values.index_select(0, place.reshape(-1)).reshape(*items.shape, *self.values.shape[1:])
        return torch.where(_wide(self.changed[place], own), own, self._under(clients, items))

    def put(self, clients: Tensor, items: Tensor, real: Tensor, rows: Tensor) -> None:
        """Write rows [B, R, ...] of `items` [B, R] where `real` [B, R]."""
        nowhere = len(self.values) - 1
        place = torch.where(real, self._places(clients, items), nowhere).reshape(-1)
        self.values.index_copy_(0, place, rows.reshape(len(place), *self.values.shape[1:]))
        self.changed[place] = True
        self.changed[nowhere] = False

    def changed_by(self, client: int) -> Tensor:
        """[m] True where the client's table differs from its base."""
        return self.changed[client * self.num_items : (client + 1) * self.num_items]

    def restart(self, clients: Tensor, base: Tensor, number: int) -> None:
        """These clients drop what they changed and stand on a new base with this number."""
        self.changed[:-1].view(-1, self.num_items)[clients] = False
        self.base_of[clients] = number
        self.bases[number] = base
        used = set(self.base_of.tolist())
        self.bases = {key: table for key, table in self.bases.items() if key in used}

    def _places(self, clients: Tensor, items: Tensor) -> Tensor:
        return clients[:, None] * self.num_items + items

    def _under(self, clients: Tensor, items: Tensor) -> Tensor:
        if len(self.bases) == 1:
            return next(iter(self.bases.values()))[items]
        numbers = sorted(self.bases)
        stacked = torch.stack([self.bases[number] for number in numbers])
        place = torch.searchsorted(torch.tensor(numbers, device=clients.device), self.base_of[clients])
        return stacked[place[:, None], items]

    def pack(self) -> dict[str, Tensor]:
        """Everything needed to restore the tables; unchanged rows are left out."""
        numbers = sorted(self.bases)
        return {
            "changed": self.changed,
            "values": self.values[self.changed],
            "base_of": self.base_of,
            "numbers": torch.tensor(numbers),
            "bases": torch.stack([self.bases[number] for number in numbers]),
        }

    def unpack(self, packed: dict[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        device = self.values.device
        self.changed = packed["changed"].to(device)
        self.values[self.changed] = packed["values"].to(device)
        self.base_of = packed["base_of"].to(device)
        self.bases = dict(zip(packed["numbers"].tolist(), packed["bases"].to(device), strict=True))


class HistoryTables(PersonalTables):
    """What clients have in training, as tables of one number a row: 1 or 0. They never change and are never saved.

    Args:
        train: every client's training items.
        num_items: m.
        dtype: of the numbers.
    """

    def __init__(self, train: Ragged, num_items: int, dtype: torch.dtype) -> None:
        self.has = torch.zeros(len(train.lengths), num_items, dtype=torch.bool, device=train.values.device)
        owners = torch.repeat_interleave(torch.arange(len(train.lengths), device=train.values.device), train.lengths)
        self.has[owners, train.values] = True
        self.dtype = dtype

    def take(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R] of `items` [B, R]."""
        return self.has[clients[:, None], items].to(self.dtype)

    def put(self, clients: Tensor, items: Tensor, real: Tensor, rows: Tensor) -> None:
        """Nothing: it is no parameter that training could move."""

    def pack(self) -> dict[str, Tensor]:
        """Nothing: it follows from the data."""
        return {}

    def unpack(self, packed: dict[str, Tensor]) -> None:
        """Nothing was packed."""


def _wide(mask: Tensor, like: Tensor) -> Tensor:
    return mask.reshape(mask.shape + (1,) * (like.dim() - mask.dim()))
