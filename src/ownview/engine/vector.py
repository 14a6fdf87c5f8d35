"""The vector engine: a stack of clients at once, equal to the loop engine up to rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.engine.allocator import keep_freed_memory
from ownview.engine.local import ClientSide, Loss, Opened, Plan, Runs, fit, numbered_phases
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples
from ownview.seam.client import Client
from ownview.seam.training import Batch, Context, Params


class VectorEngine:
    """Calls `torch.vmap(loss)`; clients share no parameter, so their losses may be summed."""

    def __init__(self, client: Client, name: str, seed: int, device: torch.device, *, preparing: bool = False) -> None:
        self.client, self.name, self.seed = client, name, seed
        self.numbered = numbered_phases(client, preparing=preparing)
        self.phases = self.numbered[0]
        self.recorder = Recorder(device)
        keep_freed_memory()

    def train(
        self, params: Params, samples: Samples, context: Context, tables: frozenset[str]
    ) -> tuple[Tensor, tuple[Opened, ...]]:
        """Train a stack of clients in place; returns [B] mean losses and the openings.

        Clients come with the busiest first.
        """
        plan = Plan.of(self.client, self.numbered, self.seed, context.round, self.recorder, tables)
        batches = [math.ceil(size / self.client.training.batch_size) for size in samples.host_sizes]
        client = ClientSide(self._stacked_loss(tuple(params), context), partial(self._open_phase, context))
        try:
            return fit(client, params, samples, Runs.of(batches), plan)
        except Exception as error:
            raise TrainingError(
                f"{self.name} failed in round {context.round} on a block of {len(batches)} clients: {error}; "
                "run it with --engine loop to see on which client"
            ) from error

    def _open_phase(self, context: Context, params: Params, phase: int) -> Params:
        opening = self.phases[phase].opening
        if opening is None:
            return {}
        here = replace(context, phase=phase)
        opened: Params = torch.vmap(lambda p: opening(p, here))(params)
        return opened

    def _stacked_loss(self, names: tuple[str, ...], context: Context) -> Loss:
        """[B] losses of a stack of clients; tensors go through `vmap` one by one, because it unpacks trees slowly."""

        def one(phase: int, *tensors: Tensor) -> Tensor:
            p = dict(zip(names, tensors, strict=False))
            return self.client.loss(p, Batch(*tensors[len(names) :]), replace(context, phase=phase))

        def stacked(p: Params, batch: Batch, phase: int) -> Tensor:
            losses: Tensor = torch.vmap(partial(one, phase))(*(p[name] for name in names), *batch)
            return losses

        return stacked
