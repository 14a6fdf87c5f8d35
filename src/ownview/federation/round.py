"""A round of federated training in one process: who takes part, what they receive, do and send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.clock import Clock, clock_on
from ownview.engine.machine import Machine
from ownview.federation import clients as client_side
from ownview.federation import server as server_side
from ownview.federation.clients import Axes, Clients
from ownview.federation.options import FederationOptions
from ownview.federation.reporting import TOGETHER
from ownview.federation.server import AggregationServer
from ownview.federation.shard import Inbox, Shard
from ownview.federation.terms import Terms
from ownview.federation.timelines import Timelines
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.traffic import Traffic
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.masking.exchange import MaskedRound
from ownview.privacy.planning import planned
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.server import Sums
from ownview.seam.training import Params, World

SMALL = 1e-3
"""Values below this in size are reported as nearly zero."""


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round.

    Args:
        number: of the round.
        clients: how many took part.
        loss: the mean over clients, None where nobody took part or clients have none.
        seconds: by part.
        bytes_down: of the message to one client, the mean over clients.
        bytes_up: of the message from one client, the mean over clients; see `messages.wire`.
        bytes_dense: what values would be on their way down without regard to zeros.
        sparsity: of every value that clients receive, after the round, shares of zeros and of values nearly zero.
    """

    number: int
    clients: int
    loss: float | None
    seconds: Mapping[str, float]
    bytes_down: int = 0
    bytes_up: int = 0
    bytes_dense: int = 0
    sparsity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class Federation:
    """A method, its clients and its server, side by side in one process. They exchange messages and share no values.

    Args:
        method: written for one client.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: device, precision, memory and engine.
        noise: what noise under a budget is drawn from; None for a key of its own that nobody knows. It does not matter
            where the budget says `noise=seeded`.
    """

    def __init__(
        self,
        method: Federated,
        split: Split,
        excluded: Ragged,
        options: FederationOptions,
        seed: int,
        machine: Machine,
        noise: NoiseKey | None = None,
    ) -> None:
        self.method, self.split, self.options, self.seed, self.machine = method, split, options, seed, machine
        plan = planned(options, split.num_users, method.releases)
        self.world = World(split.num_users, split.num_items, split.order, plan, split.data.about, split.num_new)
        self.terms = Terms.of(method, self.world, options, seed, machine, noise)
        self.client = self.terms.client
        self._require_memory()
        self.server = AggregationServer(self.terms)
        train = split.train.to(machine.device)
        timelines = Timelines(split.timeline.to(machine.device), split.num_items, machine.dtype)
        everybody, never = torch.arange(split.num_users), excluded.to(machine.device)
        self.shard = Shard(self.terms, self.terms.work(everybody, train, timelines, never, split.data.users))
        self.done = 0

    @property
    def work(self) -> Work:
        """Of all clients, with the newest that they hold."""
        return self.shard.work

    @property
    def clients(self) -> Clients:
        """What they hold."""
        return self.work.home.clients

    def _require_memory(self) -> None:
        params, width = self.client.params, self.machine.bytes_per_value
        n, m = self.world.num_clients, self.world.num_items
        rows = client_side.changed_rows(self.client, self.split.train, m)
        needed = client_side.planned_bytes(params, n, m, rows, width, self.machine.memory)
        needed += server_side.planned_bytes(self.terms)
        combine = self.terms.server.combine
        advice = {"advice": combine.advice} if isinstance(combine, Sums) else {}
        self.machine.require(needed, f"{self.method.name}'s standing values", **advice)

    def round(self, number: int) -> RoundReport:
        """Run round `number` (from 1)."""
        clock = clock_on(self.machine.device)
        cohort = self.participants(number)
        first = self.server.download(number, cohort[:0])
        masks = self._masks(number, cohort)
        put_on = None if masks is None else masks.put_on
        inbox = Inbox(self.server.begin(number), Traffic(self.terms.codec, first), self.server.take, put_on)
        loss = self._train(first, cohort, inbox, clock)
        if masks is not None:
            masks.take_off(inbox.total)
            inbox.traffic.exchanged(masks.exchange.down.total(), masks.exchange.up.total())
        self.server.finish(number, inbox.total, cohort)
        self.done = number
        clock.lap("server")
        self._after_round(number, cohort, inbox.traffic)
        clock.lap("train")
        return RoundReport(
            number, len(cohort), loss, clock.seconds(), inbox.traffic.mean_down, inbox.traffic.mean_up,
            self.terms.codec.dense_download(first), sparsity(self.server.shared),
        )  # fmt: skip

    def _train(self, first: Download, cohort: Tensor, inbox: Inbox, clock: Clock) -> float | None:
        """Clients do their part of the round; returns their mean loss, None where there is none."""
        sent = partial(self.server.download, first.round, for_training=True)
        return self.shard.round(first, cohort, sent, inbox, clock)

    def participants(self, number: int) -> Tensor:
        """Who takes part in a round."""
        return self.server.choose(number)

    def _masks(self, number: int, cohort: Tensor) -> MaskedRound | None:
        """Where uploads are masked, what hides those of a round; None where it is left out of the simulation."""
        masked = self.terms.masked
        if masked is None:
            return None
        if len(cohort) < masked.threshold:
            raise TrainingError(
                f"round {number}: {len(cohort)} clients take part, and {masked.threshold} are needed; nothing is "
                "released"
            )
        return MaskedRound(masked.cohort, number, cohort.tolist(), self.seed) if masked.masks.real else None

    def _after_round(self, number: int, cohort: Tensor, traffic: Traffic) -> None:
        """Some clients receive after the round instead of before."""
        work = self.client.work
        if isinstance(work, Reporting) and work.receives_after and len(cohort):
            traffic.download = self.server.download(number, cohort)
            self._tell(traffic.download, cohort)

    def _tell(self, download: Download, cohort: Tensor) -> None:
        """Clients work on what the server has after a round."""
        self.shard.work.after_round(download, cohort)

    def newest(self, clients: Tensor, names: frozenset[str] | None = None) -> Download:
        """What the server has for clients that predict now."""
        return self.server.download(self.done, clients, names)

    def predicting(
        self, clients: Tensor, items: Tensor | None, names: frozenset[str] | None = None
    ) -> tuple[Params, Axes]:
        """What clients predict with, given the newest download; see `Clients.predicting`."""
        return self.clients.predicting(self.newest(clients, names), clients, items, names)

    def pack(self) -> dict[str, Tensor]:
        """Clients' and server's values by name, for a checkpoint."""
        return self.server.pack() | self.clients.pack() | {"done": torch.tensor(self.done)}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        self.server.unpack(packed)
        self.clients.unpack(packed)
        self.done = int(packed.get("done", torch.tensor(self.done)))  # versions before 0.1.0 did not tell the round


def sparsity(shared: Params) -> dict[str, dict[str, float]]:
    """Of every value that clients receive the share that is exactly 0, and the share below `SMALL` in size."""
    return {
        name: {
            "zero": 1 - int(torch.count_nonzero(value)) / value.numel(),
            f"below_{SMALL:g}": _small(value) / value.numel(),
        }
        for name, value in shared.items()
    }


def _small(value: Tensor) -> int:
    """How many numbers are below `SMALL` in size; looked at in parts, to hold no second value of that size."""
    return sum(int((part.abs() < SMALL).sum()) for part in torch.split(value.reshape(-1), TOGETHER))
