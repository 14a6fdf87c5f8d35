"""Personal item tables: a common table underneath, and on top the rows a client has changed.

`DenseTables` keeps a place for every row of every client. `SparseTables` keeps the changed rows alone. Both give the
same values to the last bit, and each reads what the other packed. `personal_tables` takes the one that suits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from ownview.federation.tables.segments import BYTES_PER_CLIENT, Segments

_SEARCH_COST = 32
"""Looking a key up in an ordered list costs about as much as writing this many entries of a table; see `find`."""


_RESTORED_TOGETHER = 128
"""Clients that lie in one segment when a checkpoint is read; about as many as train together."""


def keys_of(clients: Tensor, items: Tensor, num_items: int) -> Tensor:
    """[B, R] client m + item, for clients [B] and items [B, R]."""
    return clients[:, None] * num_items + items


def rows_of(table: Tensor, places: Tensor) -> Tensor:
    """[B, R, ...] the rows of a table [T, ...] at places [B, R]; a new tensor."""
    return table.index_select(0, places.reshape(-1)).reshape(*places.shape, *table.shape[1:])


def find(listed: Tensor, asked: Tensor, span: int) -> Tensor:
    """[A] the place of each asked key among the listed, or -1.

    Few keys are searched in the list. Where many are asked for, a table of all possible keys costs less.

    Args:
        listed: [K] ascending, none twice, below `span`.
        asked: [A] below `span`.
        span: number of possible keys.
    """
    if len(listed) == 0:
        return torch.full_like(asked, -1)
    if len(asked) * _SEARCH_COST < span:
        place = torch.searchsorted(listed, asked).clamp_(max=len(listed) - 1)
        return torch.where(listed[place] == asked, place, -1)
    table = torch.full((span,), -1, dtype=torch.int32, device=listed.device)
    table[listed] = torch.arange(len(listed), dtype=torch.int32, device=listed.device)
    return table[asked].long()


class OverlayTables(ABC):
    """The part both stores share: which table each client stands on.

    A base is the common initial table, or the global table of the round in which the client last took part. A base
    stays as long as a client refers to it.

    Args:
        num_clients: n.
        base: [m, ...] the table under everybody's changed rows at first, number 0.
    """

    def __init__(self, num_clients: int, base: Tensor) -> None:
        self.num_items = len(base)
        self.bases = {0: base}
        self.base_of = torch.zeros(num_clients, dtype=torch.long, device=base.device)

    @abstractmethod
    def take(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R, ...] the rows of `items` [B, R] in each client's table."""

    @abstractmethod
    def put(self, clients: Tensor, items: Tensor, real: Tensor, rows: Tensor) -> None:
        """Write rows [B, R, ...] of `items` [B, R] where `real` [B, R]; no client and no real item comes twice."""

    def whole(self, clients: Tensor) -> Tensor:
        """[B, m, ...] every row of each client's table; a new tensor."""
        return self.take(clients, self._every_row(clients))

    def put_whole(self, clients: Tensor, tables: Tensor) -> None:
        """Write every row of each client's table [B, m, ...]; no client comes twice."""
        every = self._every_row(clients)
        self.put(clients, every, torch.ones_like(every, dtype=torch.bool), tables)

    def _every_row(self, clients: Tensor) -> Tensor:
        return torch.arange(self.num_items, device=clients.device).expand(len(clients), -1)

    def restart(self, clients: Tensor, base: Tensor, number: int) -> None:
        """These clients drop what they changed and stand on a new base with this number."""
        self._drop(clients)
        self.base_of[clients] = number
        self.bases[number] = base
        used = torch.bincount(self.base_of).nonzero()[:, 0]
        self.bases = {kept: self.bases[kept] for kept in used.tolist()}

    def pack(self) -> dict[str, Tensor]:
        """Everything needed to restore the tables, in the same form from both stores; unchanged rows are left out.

        All but base_of are new tensors, which no later round changes (`packing.gathered`).

        Returns:
            counts [n] of changed rows, items [K] of all clients end to end, ascending inside a client, their values
            [K, ...], base_of [n], numbers [b] of the bases, and bases [b, m, ...].
        """
        counts, items, values = self._changes()
        numbers = sorted(self.bases)
        return {
            "counts": counts,
            "items": items,
            "values": values,
            "base_of": self.base_of,
            "numbers": torch.tensor(numbers),
            "bases": torch.stack([self.bases[number] for number in numbers]),
        }

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` of either store returned, also in the older form with a mask [n m + 1] `changed`."""
        device = self.base_of.device
        self.base_of = packed["base_of"].to(device, copy=True)
        self.bases = dict(zip(packed["numbers"].tolist(), packed["bases"].to(device), strict=True))
        if "changed" in packed:
            counts, items = _listed(packed["changed"][:-1].reshape(-1, self.num_items))
        else:
            counts, items = packed["counts"], packed["items"]
        self._restore(counts.to(device), items.to(device), packed["values"].to(device))

    @abstractmethod
    def _drop(self, clients: Tensor) -> None:
        """Forget the changed rows of these clients."""

    @abstractmethod
    def _changes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Counts, items and values as `pack` returns them."""

    @abstractmethod
    def _restore(self, counts: Tensor, items: Tensor, values: Tensor) -> None:
        """Hold these changes, and no others."""

    def _under(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R, ...] the rows of `items` [B, R] in the tables that the clients stand on; a new tensor."""
        tables, which = self._bases_of(clients)
        if len(tables) == 1:
            return rows_of(tables[0], items)
        rows = tables[0].new_empty(*items.shape, *tables[0].shape[1:])
        for place, table in enumerate(tables):
            here = (which == place).nonzero()[:, 0]
            rows[here] = rows_of(table, items[here])
        return rows

    def _bases_of(self, clients: Tensor) -> tuple[list[Tensor], Tensor]:
        """The tables that any of these clients stands on, and which of them each does [B]."""
        tables = list(self.bases.values())
        if len(tables) == 1:
            return tables, torch.zeros_like(clients)
        numbers, which = torch.unique(self.base_of[clients], return_inverse=True)
        return [self.bases[number] for number in numbers.tolist()] or tables[:1], which


class DenseTables(OverlayTables):
    """A place for every row of every client: n m rows, and as many marks that say which of them count.

    `values` is allocated but not written: on a CPU the operating system commits a page only when a row in it is first
    changed.
    """

    def __init__(self, num_clients: int, base: Tensor) -> None:
        super().__init__(num_clients, base)
        count = num_clients * self.num_items
        # One row more than there are: padding is written there and never read.
        self.values = base.new_empty(count + 1, *base.shape[1:])
        self.changed = torch.zeros(count + 1, dtype=torch.bool, device=base.device)

    def take(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R, ...] the rows of `items` [B, R] in each client's table. On a GPU, without synchronisation."""
        place = keys_of(clients, items, self.num_items)
        own = rows_of(self.values, place)
        changed = self.changed[place].reshape(*items.shape, *[1] * (own.dim() - 2))
        return torch.where(changed, own, self._under(clients, items), out=own)

    def put(self, clients: Tensor, items: Tensor, real: Tensor, rows: Tensor) -> None:
        """Write rows [B, R, ...] of `items` [B, R] where `real` [B, R]."""
        nowhere = len(self.values) - 1
        place = torch.where(real, keys_of(clients, items, self.num_items), nowhere).reshape(-1)
        self.values.index_copy_(0, place, rows.reshape(len(place), *self.values.shape[1:]))
        self.changed[place] = True
        self.changed[nowhere] = False

    def whole(self, clients: Tensor) -> Tensor:
        """[B, m, ...] every row of each client's table, without a look at one row after the other."""
        own = self._tables.index_select(0, clients)
        changed = self._marks[clients]
        changed = changed.reshape(*changed.shape, *[1] * (own.dim() - 2))
        tables, which = self._bases_of(clients)
        if len(tables) == 1:
            return torch.where(changed, own, tables[0], out=own)
        for place, table in enumerate(tables):
            here = (which == place).nonzero()[:, 0]
            own[here] = torch.where(changed[here], own[here], table)
        return own

    def put_whole(self, clients: Tensor, tables: Tensor) -> None:
        """Write every row of each client's table [B, m, ...]."""
        self._tables.index_copy_(0, clients, tables)
        self._marks[clients] = True

    @property
    def _tables(self) -> Tensor:
        return self.values[:-1].view(-1, self.num_items, *self.values.shape[1:])

    @property
    def _marks(self) -> Tensor:
        return self.changed[:-1].view(-1, self.num_items)

    def _drop(self, clients: Tensor) -> None:
        self._marks[clients] = False

    def _changes(self) -> tuple[Tensor, Tensor, Tensor]:
        return *_listed(self._marks), self.values[self.changed]

    def _restore(self, counts: Tensor, items: Tensor, values: Tensor) -> None:
        owners = torch.repeat_interleave(counts)
        place = owners * self.num_items + items
        self.changed.zero_()
        self.changed[place] = True
        self.values[place] = values


class SparseTables(OverlayTables):
    """The rows that each client changed: 4 bytes for the item and the row itself; see `Segments`.

    A client's items are ascending. On a GPU, every call waits for what was asked of it before.
    """

    def __init__(self, num_clients: int, base: Tensor) -> None:
        super().__init__(num_clients, base)
        self.held = Segments(num_clients, base.new_empty(0, *base.shape[1:]))

    def take(self, clients: Tensor, items: Tensor) -> Tensor:
        """[B, R, ...] the rows of `items` [B, R] in each client's table."""
        rows = self._under(clients, items)
        block = torch.arange(len(clients), device=items.device)
        keys, own = self._changed_by_block(clients)
        place = find(keys, keys_of(block, items, self.num_items).reshape(-1), len(clients) * self.num_items)
        changed = (place >= 0).nonzero()[:, 0]
        rows.view(-1, *own.shape[1:]).index_copy_(0, changed, own.index_select(0, place[changed]))
        return rows

    def put(self, clients: Tensor, items: Tensor, real: Tensor, rows: Tensor) -> None:
        """Write rows [B, R, ...] of `items` [B, R] where `real` [B, R]."""
        block = torch.arange(len(clients), device=items.device)
        chosen = real.reshape(-1).nonzero()[:, 0]
        old_keys, old_rows = self._changed_by_block(clients)
        new_keys = keys_of(block, items, self.num_items).reshape(-1)[chosen]
        flat = rows.flatten(0, 1)
        joined = torch.cat([old_rows, flat]) if len(old_rows) else flat
        places = torch.cat([torch.arange(len(old_keys), device=items.device), chosen + len(old_keys)])
        keys, order = torch.sort(torch.cat([old_keys, new_keys]), stable=True)
        newest = torch.ones_like(keys, dtype=torch.bool)  # of equal keys the last, which is the new one
        newest[:-1] = keys[1:] != keys[:-1]
        keys, order = keys[newest], order[newest]
        self.held.write(clients, *self._counted(keys, len(clients)), joined.index_select(0, places[order]))

    def _changed_by_block(self, clients: Tensor) -> tuple[Tensor, Tensor]:
        """Keys b m + item [K] of the rows that B clients changed, b the place in the block, and these rows."""
        counts, items, rows = self.held.read(clients)
        owners = torch.repeat_interleave(counts, output_size=len(items))
        return owners * self.num_items + items, rows

    def _counted(self, keys: Tensor, num_clients: int) -> tuple[Tensor, Tensor]:
        """Number of keys [K] that each client has [B], and their items [K]."""
        counts = torch.bincount(keys // self.num_items, minlength=num_clients)
        return counts, (keys % self.num_items).to(torch.int32)

    def _drop(self, clients: Tensor) -> None:
        self.held.drop(clients)

    def _changes(self) -> tuple[Tensor, Tensor, Tensor]:
        counts, items, values = self.held.read(torch.arange(len(self.base_of), device=self.base_of.device))
        # Of a single segment what is read is the segment itself.
        return counts, *((items.clone(), values.clone()) if len(self.held.parts) == 1 else (items, values))

    def _restore(self, counts: Tensor, items: Tensor, values: Tensor) -> None:
        self.held.clear()
        first = 0
        for some in torch.split(torch.arange(len(counts), device=counts.device), _RESTORED_TOGETHER):
            last = first + int(counts[some].sum())
            # A copy: a part of a common tensor would keep the whole of it in memory.
            self.held.write(some, counts[some], items[first:last].clone(), values[first:last].clone())
            first = last


def _listed(marks: Tensor) -> tuple[Tensor, Tensor]:
    """Count of marks [n, m] in each row [n], and their columns [K], end to end."""
    return marks.sum(1), marks.nonzero()[:, 1].to(torch.int32)


DENSE_BYTES = 4 * 10**9
"""The most that a dense store takes, unless the caller says otherwise."""

_ITEMS_PER_ROW = 25
"""With more items than this for each changed row, a round is no faster in the dense store."""

_BYTES_PER_CLIENT = BYTES_PER_CLIENT + 8
"""What a sparse store needs for a client besides its rows: where they are, and which table is under them."""


def personal_tables(num_clients: int, base: Tensor, expected_rows: int, budget: int = DENSE_BYTES) -> OverlayTables:
    """Tables that all start as `base`, in the store that suits them.

    The dense store is taken where it is smaller, because clients change nearly every row, or where it is faster and
    fits into the budget. It is faster where m <= 25 rows: it writes rows without reading those that are there, but
    to restart a client it clears m marks, and to read a whole table it reads m rows that mostly do not count.
    Otherwise the sparse store is taken, whose memory follows what clients change.

    Args:
        num_clients: n.
        base: [m, ...].
        expected_rows: how many rows a client changes in a round.
        budget: bytes that a dense store may take for its speed.
    """
    takes_dense = _dense(num_clients, len(base), base[:1].nbytes, expected_rows, budget)
    return (DenseTables if takes_dense else SparseTables)(num_clients, base)


def stored_bytes(num_clients: int, num_items: int, row_bytes: int, expected_rows: int, budget: int) -> int:
    """Bytes of the store that `personal_tables` would choose, before there is one."""
    if _dense(num_clients, num_items, row_bytes, expected_rows, budget):
        return dense_bytes(num_clients, num_items, row_bytes)
    return sparse_bytes(num_clients, num_items, row_bytes, expected_rows)


def _dense(num_clients: int, num_items: int, row_bytes: int, expected_rows: int, budget: int) -> bool:
    dense = dense_bytes(num_clients, num_items, row_bytes)
    smaller = dense <= sparse_bytes(num_clients, num_items, row_bytes, expected_rows)
    faster = num_items <= _ITEMS_PER_ROW * expected_rows
    return smaller or (faster and dense <= budget)


def dense_bytes(num_clients: int, num_items: int, row_bytes: int) -> int:
    """Bytes of a dense store: n m (bytes of a row + 1 for its mark)."""
    return num_clients * num_items * (row_bytes + 1)


def sparse_bytes(num_clients: int, num_items: int, row_bytes: int, rows: int) -> int:
    """Bytes of a sparse store where each client changed `rows`: n (rows (bytes of a row + 4 for its item) + 24)."""
    return num_clients * (min(rows, num_items) * (row_bytes + 4) + _BYTES_PER_CLIENT)
