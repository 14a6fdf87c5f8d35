"""A round of federated training: who, with what, back to the server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.blocks import Footprint, plan
from ownview.engine.loop import LoopEngine
from ownview.engine.machine import Machine
from ownview.engine.options import FederationOptions, participation
from ownview.engine.participants import participants
from ownview.engine.samples import Samples, draw_samples
from ownview.engine.server import MeanChange, ServerOptimizer
from ownview.engine.state import State, planned_bytes
from ownview.engine.vector import VectorEngine
from ownview.errors import TrainingError
from ownview.method import Method
from ownview.random import derive
from ownview.types import Context, Params, World


class Engine(Protocol):
    """Trains a stack of clients."""

    name: str

    def train(self, params: Params, samples: Samples, context: Context, tables: frozenset[str]) -> Tensor:
        """Train `params` in place and return every client's mean loss."""


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round. `loss` is the mean over clients, None where nobody took part."""

    number: int
    clients: int
    loss: float | None
    seconds: Mapping[str, float]
    bytes_down: int
    bytes_up: int


@dataclass
class _Clock:
    """Seconds by part; on a GPU it waits for the device, so that a part's work is counted to that part."""

    device: torch.device
    parts: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, part: str) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self.last
        self.last = now


class Federation:
    """A method, its clients and its server.

    Args:
        method: written for one client.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: device, precision, memory and engine.
    """

    def __init__(
        self, method: Method, split: Split, excluded: Ragged, options: FederationOptions, seed: int, machine: Machine
    ) -> None:
        self.method, self.split, self.options, self.seed, self.machine = method, split, options, seed, machine
        self.world = World(split.num_users, split.num_items)
        params = method.params(self.world)
        machine.require(planned_bytes(params, self.world, machine.bytes_per_value), f"{method.name}'s standing values")
        self.state = State(params, self.world, seed, machine.device, machine.dtype)
        self.server = ServerOptimizer(options, self.state.shared)
        self.train = split.train.to(machine.device)
        self.sampler = NegativeSampler(excluded.to(machine.device), split.num_items, method.negatives)
        self.footprint = Footprint(params, split.num_items, machine.bytes_per_value, machine.dense)
        self.engine: Engine = (
            LoopEngine(method, self.world, seed, split.data)
            if machine.engine == "loop"
            else VectorEngine(method, self.world, seed)
        )

    def round(self, number: int) -> RoundReport:
        """Run round `number` (from 1)."""
        clock = _Clock(self.machine.device)
        clients = self.participants(number)
        self.state.begin_round(clients, number)
        change = MeanChange(self.state.params, self.state.shared)
        losses: list[Tensor] = []
        for block in self.blocks(clients):
            samples = self.samples(number, block)
            clock.lap("sample")
            losses.append(self._train(samples, Context(number), change, clock))
        self.state.shared = self.server.apply(self.state.shared, change.mean())
        clock.lap("server")
        size = self.state.shared_bytes()
        loss = float(torch.cat(losses).double().mean()) if losses else None
        return RoundReport(number, len(clients), loss, clock.parts, size, size)

    def participants(self, number: int) -> Tensor:
        """Who takes part in a round."""
        chosen = participation(self.options.clients)
        return participants(chosen, self.seed, number, self.world.num_clients, self.machine.device)

    def blocks(self, clients: Tensor) -> list[Tensor]:
        """Clients that train side by side."""
        if not len(clients):
            return []
        samples = self.train.lengths[clients] * (1 + self.method.negatives)
        return plan(clients, samples, self.footprint, self.machine.block_bytes, self.machine.block_clients)

    def samples(self, number: int, clients: Tensor) -> Samples:
        """A round's training samples of some clients."""
        key = derive(self.seed, "negatives", number)
        return draw_samples(key, clients, self.train, self.sampler, self.machine.dtype, dense=self.machine.dense)

    def _train(self, samples: Samples, context: Context, change: MeanChange, clock: _Clock) -> Tensor:
        received = self.state.receive(samples)
        sent = {name: received[name].clone() for name in self.state.shared}
        losses = self.engine.train(received, samples, context, self.state.row_names)
        clock.lap("train")
        self._require_finite(losses, received, samples, context)
        self.state.keep(samples, received)
        changes = {name: torch.sub(received[name], value, out=value) for name, value in sent.items()}
        change.add(samples, changes, self._weights(samples))
        clock.lap("server")
        return losses

    def _weights(self, samples: Samples) -> Tensor:
        chosen = self.options.weighting
        chosen = self.method.weighting if chosen == "method" else chosen
        return samples.sizes if chosen == "samples" else torch.ones_like(samples.sizes)

    def _require_finite(self, losses: Tensor, values: Params, samples: Samples, context: Context) -> None:
        checks = {"the loss": losses, **values}
        # A sum is finite only if every term is: one cheap pass.
        fine = torch.stack([torch.isfinite(value.reshape(len(losses), -1).sum(1)) for value in checks.values()])
        if bool(fine.all()):
            return
        which, client = torch.nonzero(~fine)[0].tolist()
        user = self.split.data.users[int(samples.clients[client])]
        raise TrainingError(
            f"{self.method.name} diverged in round {context.round}: {list(checks)[which]} of client {user} "
            "is not finite; lower the learning rate or the initial scale"
        )
