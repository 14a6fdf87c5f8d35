"""Training before prediction (`Client.before_predicting`): nothing is sent or stored."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ownview.engine.engines import engine
from ownview.federation.training import TrainingWork
from ownview.messages.download import Download
from ownview.seam.training import Context, Params

_NO_ROUND = 0
"""Negatives are drawn as in a round that never is, so that predictions depend on the values alone, not on when."""


class Preparation:
    """Runs `Client.before_predicting` at some clients, on what they predict with and all their training samples.

    Args:
        work: of the clients, whose values are read and never changed.
        newest: clients [B] and names -> their newest download.
    """

    def __init__(self, work: TrainingWork, newest: Callable[[Tensor, frozenset[str] | None], Download]) -> None:
        self.work, self.newest, home = work, newest, work.home
        steps = (step for phase in home.client.before_predicting for step in phase.steps)
        self.moved = sorted({name for step in steps for part in step.parts for name in part.names})
        self.engine = engine(home.client, home.name, home.seed, home.machine, home.users, preparing=True)

    def values(self, clients: Tensor) -> Params:
        """By name [B, ...], values that these clients [B] trained for prediction; empty without `before_predicting`."""
        if not self.moved:
            return {}
        self.engine.recorder.renew()
        blocks = self.work.blocks(torch.unique(clients))
        trained = [self._train(block) for block in blocks]
        where = torch.empty(len(self.work.home.train), dtype=torch.long, device=clients.device)
        where[torch.cat(list(blocks))] = torch.arange(sum(map(len, blocks)), device=clients.device)
        return {name: torch.cat([values[name] for values in trained])[where[clients]] for name in self.moved}

    @torch.enable_grad()
    def _train(self, block: Tensor) -> Params:
        samples = self.work.samples(_NO_ROUND, block)
        clients = self.work.home.clients
        values = clients.preparing(samples, self.newest(block, None))
        self.engine.train(values, samples, Context(round=1), clients.row_names)
        return {name: values[name] for name in self.moved}
