"""The server: it chooses, sends, takes and combines. It sees uploads, and nothing that clients hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from functools import partial as bind
from math import prod

import torch
from torch import Tensor

from ownview.base.errors import SettingError, TrainingError
from ownview.base.randomness import bits, derive, unit
from ownview.config.settings import own_settings
from ownview.engine.machine import Machine
from ownview.federation.aggregation import MeanPartial, SumPartial
from ownview.federation.messages import Download, Upload
from ownview.federation.mixtures import Mixtures
from ownview.federation.options import FederationOptions, participation
from ownview.federation.participants import participants
from ownview.federation.reporting import not_finite, reporting
from ownview.federation.server_optimizer import ServerOptimizer
from ownview.federation.soundness import names_moved
from ownview.seam.client import Client
from ownview.seam.cohorts import Seen
from ownview.seam.roles import HELD, PERSONAL, REPORTED, Param
from ownview.seam.server import Arrived, Mean, RowMean, Server, Sums
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class ServerPlan:
    """What a server does for a method under the federation's options.

    Args:
        name: of the method, for errors.
        client: the method's client, whose parameters it knows by name and role.
        server: the method's server, with what options change of it.
        world: number of clients and items.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: where values live.
    """

    name: str
    client: Client
    server: Server
    world: World
    options: FederationOptions
    seed: int
    machine: Machine

    @cached_property
    def mixed(self) -> frozenset[str]:
        """Names of the personal tables that the server mixes for each client."""
        personal = (name for name, param in self.client.params.items() if param.role is PERSONAL)
        return frozenset(personal if self.server.mixing is not None else ())

    @cached_property
    def averaged(self) -> frozenset[str]:
        """Names of what clients send and the server averages."""
        moved = names_moved(self.client)
        sent = (name for name, param in self.client.params.items() if param.sends and param.role is not REPORTED)
        return frozenset(name for name in sent if name in moved) - self.mixed

    @property
    def by_row(self) -> frozenset[str]:
        """Names of tables whose rows are averaged over the clients that touched them."""
        if isinstance(self.server.combine, Sums) or self.server.combine.rows != "touched":
            return frozenset()
        return self.tables

    @property
    def tables(self) -> frozenset[str]:
        """Names of the averaged tables."""
        return frozenset(name for name in self.averaged if self.client.params[name].rows)

    @property
    def weighting(self) -> str:
        """How clients count in sums: by "samples", or "uniform"."""
        return "uniform" if isinstance(self.server.combine, Sums) else self.server.combine.weighting


class AggregationServer:
    """Shared values, values held back, what clients reported, and mixtures."""

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        params, machine = plan.client.params, plan.machine
        self.shared: Params = {}
        self.held: Params = {}
        self.reported: Params = {}
        self.pending: Params = {}
        self.mixtures: dict[str, Mixtures] = {}
        self.joined = torch.zeros(plan.world.num_clients, dtype=torch.bool, device=machine.device)
        for name, param in params.items():
            if not (param.from_server or param.role in (HELD, REPORTED)):
                continue
            start = param.drawn(name, plan.world.num_items, plan.seed).to(machine.device, machine.dtype)
            if param.role is REPORTED:
                self.reported[name] = start.repeat(plan.world.num_clients, *[1] * start.dim())
                if plan.server.cohort is not None:
                    self.pending[name] = torch.zeros_like(self.reported[name])
            else:
                (self.held if param.role is HELD else self.shared)[name] = start
            if name in plan.mixed and plan.server.mixing is not None:
                key = derive(plan.seed, "mixing")
                self.mixtures[name] = Mixtures(plan.server.mixing, start, plan.world.num_clients, key)
        self.optimizer = ServerOptimizer(plan.options, {name: self.shared[name] for name in plan.averaged})
        self.seen = self._seen(0)

    def choose(self, number: int) -> Tensor:
        """Identities of the clients that take part in round `number`, ascending."""
        plan, self.seen = self.plan, self._seen(number)
        chosen = participation(plan.options.clients)
        wanted = chosen.wanted(plan.world.num_clients)
        if plan.server.cohort is not None and wanted is not None and wanted < plan.world.num_clients:
            return plan.server.cohort.choose(self.seen, wanted)
        return participants(chosen, plan.seed, number, plan.world.num_clients, plan.machine.device)

    def _seen(self, number: int) -> Seen:
        """What the server has seen of its clients as round `number` begins."""
        return Seen({name: value.clone() for name, value in self.reported.items()}, self.plan.seed, number)

    def download(
        self, number: int, clients: Tensor, names: frozenset[str] | None = None, *, for_training: bool = False
    ) -> Download:
        """What the server has for these clients.

        Args:
            number: of the round.
            clients: [B] identities.
            names: what clients look at; mixtures that nobody looks at are not made. None for everything.
            for_training: whether clients are left out that do not receive in this round.
        """
        values, mixtures = dict(self.shared), {}
        for name, param in self.plan.client.params.items():
            if name in self.mixtures and (names is None or param.received_as in names):
                mixtures[name] = self.mixtures[name].sent(clients)
            if param.everybodys_mean and (names is None or param.everybodys_mean in names):
                values[param.everybodys_mean] = self.mixtures[name].common()
        moves = {name: value[clients] for name, value in self.pending.items()}
        receives = self._receives(number, clients) if for_training else None
        return Download(number, values, mixtures, moves, receives)

    def _receives(self, number: int, clients: Tensor) -> Tensor | None:
        """[B] who receives in this round; None where everybody does. In its first round every client does."""
        share = self.plan.options.receiving
        if share == 1.0:
            return None
        drawn = bits(derive(self.plan.seed, "receiving", number), clients, torch.zeros_like(clients))
        return (unit(drawn) < share) | ~self.joined[clients]

    def begin(self) -> MeanPartial | SumPartial:
        """The sums before anybody has sent anything."""
        plan, combine = self.plan, self.plan.server.combine
        like = torch.empty(0, dtype=plan.machine.dtype, device=plan.machine.device)
        if isinstance(combine, Sums):
            return SumPartial(reporting(plan.client).sends, like)
        personal = frozenset(name for name in plan.averaged if plan.client.params[name].role is PERSONAL)
        weigh = combine.weigh if isinstance(combine, RowMean) else None
        averaged = {name: self.shared[name] for name in self.shared if name in plan.averaged}
        return MeanPartial(averaged, like, combine.weighting, personal, plan.by_row, weigh, plan.tables)

    def take(self, upload: Upload) -> None:
        """Note what the server needs of every single upload; sums are taken by the partial sum."""
        self.joined[upload.clients] = True
        for name in (one for one in self.reported if one in upload.whole):
            self.reported[name][upload.clients] = upload.whole[name]
            if name in self.pending:  # the client has added it
                self.pending[name][upload.clients] = 0
        for name, mixtures in self.mixtures.items():
            mixtures.take(upload.clients, upload.whole[name], upload.samples)

    def finish(self, number: int, total: MeanPartial | SumPartial, cohort: Tensor) -> None:
        """Combine what has arrived from the clients of the round."""
        if isinstance(total, SumPartial):
            self._combine(number, total, len(cohort))
            return
        mean = total.mean()
        self.shared = {**self.shared, **self.optimizer.apply({name: self.shared[name] for name in mean}, mean)}
        for name, mixtures in self.mixtures.items():
            mixtures.mix(self.reported)
            self.shared[name] = mixtures.mean()
        after = self.plan.server.after
        if after is not None:
            self.shared |= after(self.shared, bind(self._draw, number))
        self._move_others(cohort)

    def _combine(self, number: int, total: SumPartial, clients: int) -> None:
        combine = self.plan.server.combine
        if not clients or not isinstance(combine, Sums):
            return
        new = combine.combine(total.sums, self.shared | self.held, Arrived(number, clients))
        for name, value in new.items():
            if not bool(torch.isfinite(value).all()):
                raise TrainingError(not_finite(self.plan.name, name, number))
            (self.held if name in self.held else self.shared)[name] = value.to(self.plan.machine.dtype)

    def _draw(self, number: int, name: str) -> Tensor:
        """A parameter's initial values, drawn anew after round `number`."""
        drawn = self.plan.client.params[name].drawn(name, self.plan.world.num_items, self.plan.seed, number)
        return drawn.to(self.plan.machine.device, self.plan.machine.dtype)

    def _move_others(self, cohort: Tensor) -> None:
        """Clients that did not take part follow those that did, where the method has it so, by their next download."""
        choosing = self.plan.server.cohort
        if choosing is None or not 0 < len(cohort) < self.plan.world.num_clients:
            return
        for name, move in choosing.moves(self.seen, cohort, self.reported).items():
            self.reported[name] += move
            self.pending[name] += move

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"{kind}.{name}": value for kind in _KINDS for name, value in getattr(self, kind).items()}
        for name, mixtures in self.mixtures.items():
            packed |= {f"mixtures.{name}.{part}": value for part, value in mixtures.pack().items()}
        return packed | {"joined": self.joined} | self.optimizer.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for kind in _KINDS:
            for name, value in getattr(self, kind).items():
                # Earlier versions kept nothing pending.
                getattr(self, kind)[name] = packed.get(f"{kind}.{name}", value).to(value.device, copy=True)
        for name, mixtures in self.mixtures.items():
            prefix = f"mixtures.{name}."
            mixtures.unpack({k.removeprefix(prefix): v for k, v in packed.items() if k.startswith(prefix)})
        self.joined = packed.get("joined", self.joined).to(self.joined.device, copy=True)
        self.optimizer.unpack(packed)


_KINDS = ("shared", "held", "reported", "pending")
_HEEDED_BY_SUMS = ("clients", "privacy")


def with_options(method: str, server: Server, options: FederationOptions, client: Client) -> Server:
    """The server with what the federation's options change of it; refuses options that mean nothing to it."""
    combine = server.combine
    plain = FederationOptions()
    if isinstance(combine, Sums):
        for one in (name for name in own_settings(FederationOptions) if name not in _HEEDED_BY_SUMS):
            found, usual = getattr(options, one), getattr(plain, one)
            if found != usual:
                raise SettingError(
                    f"federation setting {one}={found!r}: the server of {method} adds up what clients send and has no "
                    f"mean of tables to change; expected {usual!r}"
                )
        return server
    if options.receiving < 1 and not any(param.role is PERSONAL for param in client.params.values()):
        raise SettingError(
            f"federation setting receiving={options.receiving}: a client of {method} has no table of its own to go on "
            "from; expected 1.0"
        )
    weighting = combine.weighting if options.weighting == "method" else options.weighting
    if options.row_mean != "method":
        return replace(server, combine=Mean(weighting, options.row_mean))
    return replace(server, combine=replace(combine, weighting=weighting) if isinstance(combine, Mean) else combine)


def planned_bytes(params: Mapping[str, Param], world: World, bytes_per_value: int, plan: ServerPlan) -> int:
    """Bytes that the server needs, before any of it is allocated."""
    values = {name: prod(param.whole_shape(world.num_items)) for name, param in params.items()}
    standing = sum(values[name] for name, param in params.items() if param.from_server or param.role is HELD)
    standing += world.num_clients * sum(values[name] for name, param in params.items() if param.role is REPORTED)
    if isinstance(plan.server.combine, Sums):
        # The server's values and the sums stand twice while they are combined.
        sums = sum(prod(one.shape) for one in reporting(plan.client).sends.values())
        standing = 2 * (standing + sums) + plan.server.combine.working
    # Mixtures: uploads of this round and the last, and weights.
    standing += sum((2 * values[name] + world.num_clients) * world.num_clients for name in plan.mixed)
    return standing * bytes_per_value
