"""What clients train before they predict, where their method asks for it: nothing is sent, nothing is kept."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.engine.loop import LoopEngine
from ownview.engine.vector import VectorEngine
from ownview.federation.round import Federation
from ownview.seam.training import Context, Params

_NO_ROUND = 0
"""Negatives are drawn as in a round that never is, so that predictions depend on the values alone, not on when."""


class Preparation:
    """Runs `Method.before_predicting` at some clients, on what they predict with and all their training samples.

    Args:
        federation: of the clients, whose state is read when values are asked for and never changed.
    """

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        method, world, place = federation.method, federation.world, federation.machine
        self.moved = sorted(
            {
                name
                for phase in method.before_predicting(world)
                for step in phase.steps
                for part in step.parts
                for name in part.names
            }
        )
        self.engine = (
            LoopEngine(method, world, federation.seed, place.device, federation.split.data, preparing=True)
            if place.engine == "loop"
            else VectorEngine(method, world, federation.seed, place.device, preparing=True)
        )

    def values(self, clients: Tensor) -> Params:
        """By name [B, ...], what these clients have worked out once they predict; empty where nothing is asked."""
        if not self.moved:
            return {}
        self.engine.recorder.renew()
        blocks = self.federation.blocks(torch.unique(clients))
        trained = [self._train(block) for block in blocks]
        where = torch.empty(self.federation.world.num_clients, dtype=torch.long, device=clients.device)
        where[torch.cat(blocks)] = torch.arange(sum(map(len, blocks)), device=clients.device)
        return {name: torch.cat([values[name] for values in trained])[where[clients]] for name in self.moved}

    @torch.enable_grad()
    def _train(self, block: Tensor) -> Params:
        federation = self.federation
        samples = federation.samples(_NO_ROUND, block)
        values = federation.state.preparing(samples)
        self.engine.train(values, samples, Context(round=1), federation.state.row_names)
        return {name: values[name] for name in self.moved}
