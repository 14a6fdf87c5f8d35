"""Scores by clients, each with the values that it predicts with. A device is the same with one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import torch
from torch import Tensor

from ownview.engine.blocks import plan
from ownview.federation.checks.soundness import names_read
from ownview.federation.clients import Axes
from ownview.federation.preparation import Preparation
from ownview.federation.reporting import ReportingWork
from ownview.federation.training import TrainingWork
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.seam.roles import visible
from ownview.seam.training import Params

Newest = Callable[[Tensor, frozenset[str] | None], Download]
"""Clients [B], and what is looked at -> the newest download that they have."""


class ClientScorer:
    """Scores items for users by their clients' values, in blocks that bound memory.

    Args:
        work: of the clients.
        newest: clients and names -> their newest download.
    """

    def __init__(self, work: Work, newest: Newest) -> None:
        self.work, self.home, self.newest = work, work.home, newest
        trains = isinstance(work, TrainingWork)
        self.names = names_read(self.home.client) if trains else None
        self.preparation = Preparation(work, newest) if isinstance(work, TrainingWork) else None

    @torch.no_grad()
    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` [B, C] for `users` [B]; of all items where `items` is None."""
        if items is not None and self.home.client.whole_rows:
            return self.scores(users, None).gather(1, items)
        if isinstance(self.work, ReportingWork) and self.work.in_order:
            return self._by_length(users, self.work)
        prepared = {} if self.preparation is None else self.preparation.values(users)
        parts = []
        for here in self._slices(len(users), items):
            values, axes = self._values(users[here], None if items is None else items[here])
            values |= {name: value[here] for name, value in prepared.items()}
            axes |= dict.fromkeys(prepared, 0)
            parts.append(self._of_each(values, axes, len(users[here])))
        return torch.cat(parts)

    def _of_each(self, values: Params, axes: Axes, clients: int) -> Tensor:
        """[B, C] scores by client; computed once for all where no private value is read."""
        if all(axis is None for axis in axes.values()):
            return self.home.client.scores(values).expand(clients, -1)
        found: Tensor = torch.vmap(self.home.client.scores, in_dims=(axes,))(values)
        return found

    def _by_length(self, users: Tensor, work: ReportingWork) -> Tensor:
        """[B, m] scores of clients that look at timelines; those of like length side by side need little padding."""
        places = torch.arange(len(users), device=users.device)
        lengths = self.home.clients.timelines.line.items.lengths_of(users)
        machine = self.home.machine
        found = torch.empty(len(users), self.home.world.num_items, dtype=machine.dtype, device=users.device)
        for here in plan(places, lengths, work.needs, machine.block_bytes, machine.block_clients) if len(users) else ():
            values, axes = self._values(users[here], None)
            found[here] = torch.vmap(self.home.client.scores, in_dims=(axes,))(values)
        return found

    def _values(self, users: Tensor, items: Tensor | None) -> tuple[Params, Axes]:
        download = self.newest(users, self.names)
        if isinstance(self.work, ReportingWork):
            return self.work.values(download, users)
        return self.home.clients.predicting(download, users, items, self.names)

    def _slices(self, count: int, items: Tensor | None) -> Iterator[slice]:
        rows = self.home.world.num_items if items is None else items.shape[1]
        machine, names = self.home.machine, self.names
        seen = [param for name, param in visible(self.home.client.params).items() if names is None or name in names]
        tables = sum(prod(one.shape) for one in seen if one.rows and (one.own or items is not None))
        at_work = self.work.work.needed(0) if isinstance(self.work, ReportingWork) else 0
        per_user = ((4 * tables + 8) * rows + at_work) * machine.bytes_per_value
        step = max(1, machine.block_bytes // per_user)
        return (slice(start, start + step) for start in range(0, count, step))
