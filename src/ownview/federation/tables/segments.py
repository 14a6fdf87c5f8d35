"""Rows of many clients, of each as many as it has, without an object for every client."""

from __future__ import annotations

import torch
from torch import Tensor

_DEAD_SHARE = 0.25
"""Most unreferenced rows for each referenced one, before rows are compacted."""

_WASTE = 0.1
"""A segment with a larger share of dead rows than this is written anew when there are too many of them in all."""

_ROWS_TOGETHER = 2**15
"""About how many rows are written anew at once."""

BYTES_PER_CLIENT = 16
"""Where a client's rows are: the number of a segment, the first of them in it, and how many."""


class Segments:
    """What clients that are written together have lies end to end in one segment; a client is three numbers.

    What a client had before stays where it is, dead, until the whole segment is dead or there is too much of it: then
    what is alive in the worst segments is written anew, some clients at a time.

    Args:
        num_clients: n.
        row: [0, ...] a tensor like the rows, without any.
    """

    def __init__(self, num_clients: int, row: Tensor) -> None:
        self.nothing = (torch.empty(0, dtype=torch.int32, device=row.device), row)
        self.parts: dict[int, tuple[Tensor, Tensor]] = {}
        self.alive: dict[int, int] = {}
        self.where = torch.full((num_clients,), -1, dtype=torch.int32, device=row.device)
        self.start = torch.zeros(num_clients, dtype=torch.long, device=row.device)
        self.count = torch.zeros(num_clients, dtype=torch.int32, device=row.device)
        self.next = 0
        self.stored_rows = self.alive_rows = 0

    def read(self, clients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Number of rows of clients [B], their items [K] and the rows [K, ...], client after client.

        What is returned may be part of the store: it must not be written to.
        """
        counts = self.count[clients].long()
        numbers = torch.unique(self.where[clients][counts > 0]).tolist()
        if not numbers:
            return counts, *self.nothing
        total = int(counts.sum())
        inside = _places(self.start[clients], counts, total)
        if len(numbers) == 1:
            items, rows = self.parts[numbers[0]]
            whole = total == len(items) and bool((inside[1:] == inside[:-1] + 1).all())
            return counts, *((items, rows) if whole else (items[inside], rows.index_select(0, inside)))
        found = self.nothing[0].new_empty(total), self.nothing[1].new_empty(total, *self.nothing[1].shape[1:])
        of = torch.repeat_interleave(self.where[clients], counts, output_size=total)
        for number in numbers:
            here = (of == number).nonzero()[:, 0]
            for target, source in zip(found, self.parts[number], strict=True):
                target.index_copy_(0, here, source.index_select(0, inside[here]))
        return counts, *found

    def write(self, clients: Tensor, counts: Tensor, items: Tensor, rows: Tensor) -> None:
        """Hold for clients [B], of whom none comes twice, these rows in place of those they have.

        Args:
            clients: [B].
            counts: [B] rows of each.
            items: [K] int32, client after client; kept, not copied.
            rows: [K, ...]; kept, not copied.
        """
        self._hold(clients, counts, items, rows)
        if self.stored_rows - self.alive_rows > _DEAD_SHARE * self.alive_rows:
            self._tidy()

    def drop(self, clients: Tensor) -> None:
        """Forget what these clients [B] have."""
        self._release(clients)
        self.where[clients], self.count[clients] = -1, 0

    def clear(self) -> None:
        """Forget everything."""
        self.parts.clear()
        self.alive.clear()
        self.where.fill_(-1)
        self.count.zero_()
        self.stored_rows = self.alive_rows = 0

    def _hold(self, clients: Tensor, counts: Tensor, items: Tensor, rows: Tensor) -> None:
        self._release(clients)
        number, self.next = self.next, self.next + 1
        self.where[clients] = torch.where(counts > 0, number, -1).to(torch.int32)
        self.start[clients] = counts.cumsum(0) - counts
        self.count[clients] = counts.to(torch.int32)
        if len(items):
            self.parts[number], self.alive[number] = (items, rows), len(items)
            self.stored_rows += len(items)
            self.alive_rows += len(items)

    def _release(self, clients: Tensor) -> None:
        numbers, which = torch.unique(self.where[clients], return_inverse=True)
        freed = torch.zeros(len(numbers), dtype=torch.long, device=numbers.device)
        freed.scatter_add_(0, which, self.count[clients].long())
        for number, rows in zip(numbers.tolist(), freed.tolist(), strict=True):
            if number < 0:
                continue
            self.alive[number] -= rows
            self.alive_rows -= rows
            if not self.alive[number]:
                self.stored_rows -= len(self.parts[number][0])
                del self.alive[number], self.parts[number]

    def _tidy(self) -> None:
        """Write what is alive in wasteful segments anew, so that they can go."""
        wasteful = [k for k, (items, _) in self.parts.items() if self.alive[k] < (1 - _WASTE) * len(items)]
        numbers = torch.tensor(wasteful, dtype=torch.int32, device=self.where.device)
        clients = torch.isin(self.where, numbers).nonzero()[:, 0]
        clients = clients[torch.argsort(self.where[clients], stable=True)]
        turns = torch.unique_consecutive(self.count[clients].cumsum(0) // _ROWS_TOGETHER, return_counts=True)[1]
        for some in clients.split_with_sizes(turns.tolist()):
            counts, items, rows = self.read(some)
            self._hold(some, counts, items, rows)


def _places(start: Tensor, counts: Tensor, total: int) -> Tensor:
    """[K] start, start + 1, ... of every client, as many as it has."""
    before = counts.cumsum(0) - counts
    return torch.arange(total, device=start.device) + torch.repeat_interleave(start - before, counts, output_size=total)
