"""Two engines over one training loop: a stack of clients at once, and one client at a time. Equal up to rounding."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from ownview.base.errors import OwnviewError, TrainingError
from ownview.data.interactions import IdArray
from ownview.engine.local import Opened, Plan, Runs, fit
from ownview.engine.machine import Machine, keep_freed_memory
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples
from ownview.seam.client import Client
from ownview.seam.training import Context, Params

Trained = tuple[Tensor, tuple[Opened, ...]]
"""[B] mean loss of every client, and the openings of phases."""


class Engine(ABC):
    """Trains a stack of clients.

    Args:
        client: the method's.
        name: of the method, for errors.
        seed: of the run.
        device: where it runs.
        users: whose clients they are, by position, for errors.
        preparing: whether it runs what clients do before they predict, or a round's work.
    """

    def __init__(
        self, client: Client, name: str, seed: int, device: torch.device, users: IdArray, *, preparing: bool = False
    ) -> None:
        self.client, self.name, self.seed, self.users = client, name, seed, users
        self.phases = (*client.phases, *client.before_predicting)
        first = len(client.phases)
        self.numbers = range(first, len(self.phases)) if preparing else range(first)
        self.recorder = Recorder(device)
        keep_freed_memory()

    @abstractmethod
    def train(self, params: Params, samples: Samples, context: Context, tables: frozenset[str]) -> Trained:
        """Train a stack of clients in place.

        Args:
            params: by name, [B, ...]; tables are [B, R, ...].
            samples: of the same clients, the busiest first.
            context: of the round.
            tables: the names of parameters with rows.
        """

    def _fit(self, params: Params, samples: Samples, runs: Runs, number: int, tables: frozenset[str]) -> Trained:
        work = self.client.training
        plan = Plan(
            self.phases, self.numbers, work.batch_size, 1 + work.negatives, self.seed, number, self.recorder, tables
        )  # fmt: skip
        return fit(self.client, params, samples, runs, plan)

    def _batches(self, samples: Samples) -> list[int]:
        return [math.ceil(size / self.client.training.batch_size) for size in samples.host_sizes]


class VectorEngine(Engine):
    """A stack at once, by `torch.vmap`; clients share no parameter, so their losses may be summed."""

    def train(self, params: Params, samples: Samples, context: Context, tables: frozenset[str]) -> Trained:
        """All together."""
        batches = self._batches(samples)
        try:
            return self._fit(params, samples, Runs.of(batches), context.round, tables)
        except Exception as error:
            raise TrainingError(
                f"{self.name} failed in round {context.round} on a block of {len(batches)} clients: {error}; "
                "run it with --engine loop to see on which client"
            ) from error


class LoopEngine(Engine):
    """One client at a time, exactly as a device would run it. Slow, plain, and the reference; it names the client."""

    def train(self, params: Params, samples: Samples, context: Context, tables: frozenset[str]) -> Trained:
        """One after the other, without padding."""
        results = [self._one(params, samples, k, context, tables) for k in range(len(samples.clients))]
        losses, opened = zip(*results, strict=True)
        return torch.stack(losses), tuple(_stacked(list(same)) for same in zip(*opened, strict=True))

    def _one(self, params: Params, samples: Samples, k: int, context: Context, tables: frozenset[str]) -> Trained:
        mine = samples.alone(k)
        rows, (batches,) = len(mine.items), self._batches(mine)
        values = {name: value[k, :rows] if name in tables else value[k] for name, value in params.items()}
        try:
            return self._fit(values, mine, Runs.alone(batches), context.round, tables)
        except OwnviewError:
            raise
        except Exception as error:
            shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in values.items())
            user = self.users[int(mine.clients)]
            raise TrainingError(
                f"{self.name} failed on client {user} in round {context.round}: {error} "
                f"(inputs: {shapes}; {int(mine.sizes)} samples in {batches} batches)"
            ) from error


def engine(
    client: Client, name: str, seed: int, machine: Machine, users: IdArray, *, preparing: bool = False
) -> Engine:
    """The engine that the machine's settings name; see `Engine` for what is given."""
    kind = LoopEngine if machine.engine == "loop" else VectorEngine
    return kind(client, name, seed, machine.device, users, preparing=preparing)


def _stacked(same: list[Opened]) -> Opened:
    """One phase's opening of every client, as one of the stack."""
    values = {name: torch.stack([one.values[name] for one in same]) for name in same[0].values}
    return Opened(same[0].phase, values)
