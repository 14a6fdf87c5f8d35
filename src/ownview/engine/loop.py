"""The loop engine: one client at a time, exactly as a device would run it. Slow, plain, and the reference."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ownview.base.errors import OwnviewError, TrainingError
from ownview.data.interactions import IdArray
from ownview.engine.local import ClientSide, Opened, Plan, Runs, fit, numbered_phases
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples
from ownview.seam.client import Client
from ownview.seam.training import Batch, Context, Params


class LoopEngine:
    """Calls the client's loss for every client in turn and names the client when something goes wrong."""

    def __init__(
        self,
        client: Client,
        name: str,
        seed: int,
        device: torch.device,
        users: IdArray,
        *,
        preparing: bool = False,
    ) -> None:
        self.client, self.name, self.seed, self.users = client, name, seed, users
        self.numbered = numbered_phases(client, preparing=preparing)
        self.phases = self.numbered[0]
        self.recorder = Recorder(device)

    def train(
        self, params: Params, samples: Samples, context: Context, tables: frozenset[str]
    ) -> tuple[Tensor, tuple[Opened, ...]]:
        """Train a stack of clients in place, one after the other; returns [B] mean losses and the openings.

        Args:
            params: by name, [B, ...]; tables are [B, R, ...].
            samples: of the same clients.
            context: of the round.
            tables: the names of parameters with rows, whose padding is cut off.
        """
        results = [self._one(params, samples, k, context, tables) for k in range(len(samples.clients))]
        losses, opened = zip(*results, strict=True)
        return torch.stack(losses), tuple(_stacked(list(same)) for same in zip(*opened, strict=True))

    def _one(
        self, params: Params, samples: Samples, k: int, context: Context, tables: frozenset[str]
    ) -> tuple[Tensor, tuple[Opened, ...]]:
        mine = samples.alone(k)
        rows = len(mine.items)
        values = {name: value[k, :rows] if name in tables else value[k] for name, value in params.items()}
        batches = math.ceil(mine.host_sizes[0] / self.client.training.batch_size)

        def loss(p: Params, batch: Batch, phase: int) -> Tensor:
            return self.client.loss(p, batch, replace(context, phase=phase))

        def open_phase(p: Params, phase: int) -> Params:
            opening = self.phases[phase].opening
            return {} if opening is None else opening(p, replace(context, phase=phase))

        try:
            plan = Plan.of(self.client, self.numbered, self.seed, context.round, self.recorder, tables)
            return fit(ClientSide(loss, open_phase), values, mine, Runs.alone(batches), plan)
        except OwnviewError:
            raise
        except Exception as error:
            shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in values.items())
            user = self.users[int(mine.clients)]
            raise TrainingError(
                f"{self.name} failed on client {user} in round {context.round}: {error} "
                f"(inputs: {shapes}; {int(mine.sizes)} samples in {batches} batches)"
            ) from error


def _stacked(same: list[Opened]) -> Opened:
    """One phase's opening of every client, as one of the stack."""
    values = {name: torch.stack([one.values[name] for one in same]) for name in same[0].values}
    return Opened(same[0].phase, values)
