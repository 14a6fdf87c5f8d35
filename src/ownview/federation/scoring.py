"""Scores of trained clients: every user with what it predicts with."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from ownview.engine.machine import Machine
from ownview.federation.preparation import Preparation
from ownview.federation.round import Federation
from ownview.federation.soundness import names_read
from ownview.federation.state import State
from ownview.seam.method import Method
from ownview.seam.training import Params, visible

Prepare = Callable[[Tensor], Params]


class ClientScorer:
    """Scores items for users by their clients' parameters, in blocks that bound memory.

    Args:
        method: written for one client.
        state: what clients hold.
        machine: bounds memory.
        prepare: clients [B] -> values [B, ...] that they work out before they predict, by name.
    """

    def __init__(self, method: Method, state: State, machine: Machine, prepare: Prepare | None = None) -> None:
        if prepare is None and method.before_predicting(state.world):
            raise ValueError(f"clients of {method.name} train before they predict: use scorer_of")
        self.method, self.state, self.machine, self.prepare = method, state, machine, prepare
        self.names = names_read(method, state.world)

    @torch.no_grad()
    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` [B, C] for `users` [B]; of all items where `items` is None."""
        if items is not None and self.method.looks_around:
            return self.scores(users, None).gather(1, items)
        parts = []
        prepared = {} if self.prepare is None else self.prepare(users)
        for start in range(0, len(users), self._block(items)):
            here = slice(start, start + self._block(items))
            values, axes = self.state.predicting(users[here], None if items is None else items[here], self.names)
            values |= {name: value[here] for name, value in prepared.items()}
            axes |= dict.fromkeys(prepared, 0)
            parts.append(torch.vmap(self.method.scores, in_dims=(axes,))(values))
        return torch.cat(parts)

    def _block(self, items: Tensor | None) -> int:
        rows = self.state.world.num_items if items is None else items.shape[1]
        seen = [param for name, param in visible(self.state.params).items() if name in self.names]
        tables = sum(prod(p.shape) for p in seen if p.rows and (p.own or items is not None))
        per_user = (4 * tables + 8) * rows * self.machine.bytes_per_value
        return max(1, self.machine.block_bytes // per_user)


def scorer_of(federation: Federation) -> ClientScorer:
    """Scores by a federation's clients, which do first what their method asks of them."""
    method, state, machine = federation.method, federation.state, federation.machine
    waiting = method.before_predicting(federation.world)
    return ClientScorer(method, state, machine, Preparation(federation).values if waiting else None)
