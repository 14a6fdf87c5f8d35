"""A federation in one process: a method, its clients and its server, round after round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ownview.config.simulated_devices import devices
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation import clients as client_side
from ownview.federation import server as server_side
from ownview.federation.clients import Axes, Clients
from ownview.federation.facts import OwnFacts, world_of
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.federation.timelines import Timelines
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.planning import planned
from ownview.round.conduct import RoundReport, UploadRule, conduct, report
from ownview.round.local_fleet import LocalFleet
from ownview.round.simulated import Simulated
from ownview.seam.method import Federated
from ownview.seam.server import Sums
from ownview.seam.training import Params


class Federation:
    """A method, its clients and its server, side by side in one process. They exchange messages and share no values.

    Args:
        method: written for one client.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: device, precision, memory and engine.
        noise: what noise under a budget is drawn from; None for a fresh secret key. It does not matter
            where the budget says `noise=seeded`.
        rules: that look at uploads before they are added up; see `round.conduct`.
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
        rules: Sequence[UploadRule] = (),
    ) -> None:
        self.method, self.split, self.options, self.seed, self.machine = method, split, options, seed, machine
        self.excluded = excluded
        plan = planned(options, split.num_users, method.releases)
        self.world = world_of(split, plan)
        self.terms = Terms.of(method, self.world, options, seed, machine, noise)
        self.client = self.terms.client
        self._require_memory()
        self.server = AggregationServer(self.terms)
        train = split.train.to(machine.device)
        timelines = Timelines(split.timeline.to(machine.device), split.num_items, machine.dtype)
        clients, never = torch.arange(split.num_users), excluded.to(machine.device)
        facts = OwnFacts.of(split, self.client.params)
        work = self.terms.work(clients, train, timelines, never, split.data.users, facts)
        self.fleet, self.rules, self.done = self._fleet(work), tuple(rules), 0

    def _fleet(self, work: Work) -> LocalFleet:
        """The fleet that answers."""
        asked = devices(self.options.devices)
        return LocalFleet(self.terms, work) if asked is None else Simulated(self.terms, work, asked)

    @property
    def work(self) -> Work:
        """The work of all clients, on their current values."""
        return self.fleet.work

    @property
    def clients(self) -> Clients:
        """Private values and personal tables of all clients."""
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
        done = report(conduct(self.server, self.fleet, number, self.rules))
        self.done = number
        return done

    def participants(self, number: int) -> Tensor:
        """[C] identities of the clients chosen for a round."""
        return self.fleet.choose(self.server, number)

    def newest(self, clients: Tensor, names: frozenset[str] | None = None) -> Download:
        """The download of clients that predict now."""
        return self.server.download(self.done, clients, names)

    def predicting(
        self, clients: Tensor, items: Tensor | None, names: frozenset[str] | None = None
    ) -> tuple[Params, Axes]:
        """What clients predict with, given the newest download; see `Clients.predicting`."""
        return self.clients.predicting(self.newest(clients, names), clients, items, names)

    def pack(self) -> dict[str, Tensor]:
        """Clients' and server's values by name, for a checkpoint."""
        return self.server.pack() | self.clients.pack() | self.fleet.pack() | {"done": torch.tensor(self.done)}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        self.server.unpack(packed)
        self.clients.unpack(packed)
        self.fleet.unpack(packed)
        self.done = int(packed.get("done", torch.tensor(self.done)))  # versions before 0.1.0 did not write the round
