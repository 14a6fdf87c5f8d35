"""A round of federated training: who, with what, back to the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from ownview.base.errors import SettingError, TrainingError
from ownview.base.randomness import bits, derive, generator, unit
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.blocks import BYTES_PER_SAMPLE, Footprint, plan
from ownview.engine.clock import Clock, clock_on
from ownview.engine.local import Opened
from ownview.engine.loop import LoopEngine
from ownview.engine.machine import Machine
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples, draw_samples
from ownview.engine.vector import VectorEngine
from ownview.federation.options import FederationOptions, participation
from ownview.federation.participants import participants
from ownview.federation.privacy import privacy
from ownview.federation.server import MeanChange, ServerOptimizer
from ownview.federation.soundness import names_moved, require_sound
from ownview.federation.state import Received, State, planned_bytes
from ownview.federation.uploads import Upload
from ownview.federation.weighted_rows import RowWeightedChange
from ownview.federation.wire import Traffic, dense_size, sparsity
from ownview.seam.cohorts import Seen
from ownview.seam.method import Method
from ownview.seam.training import Context, Opening, Params, Phase, World


class Engine(Protocol):
    """Trains a stack of clients."""

    name: str
    phases: tuple[Phase, ...]
    recorder: Recorder

    def train(
        self, params: Params, samples: Samples, context: Context, tables: frozenset[str]
    ) -> tuple[Tensor, tuple[Opened, ...]]:
        """Train `params` in place; returns every client's mean loss and the openings of phases."""


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round.

    Args:
        number: of the round.
        clients: how many took part.
        loss: the mean over clients, None where nobody took part.
        seconds: by part.
        bytes_down: what one client downloaded.
        bytes_up: what one client uploaded, the mean over clients; see `engine.wire`.
        bytes_dense: what shared values would be on their way down without regard to zeros.
        sparsity: of every shared parameter after the round, shares of zeros and of values nearly zero.
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
        require_sound(method, self.world)
        params = method.params(self.world)
        if options.receiving < 1 and not any(param.beside for param in params.values()):
            raise SettingError(
                f"federation setting receiving={options.receiving}: a client of {method.name} has no table of its own "
                "to go on from; expected 1.0"
            )
        mixing = method.server_mixing
        needed = planned_bytes(params, self.world, machine.bytes_per_value, mixed=mixing is not None)
        machine.require(needed, f"{method.name}'s standing values")
        steps = (step for phase in method.phases(self.world) for step in phase.steps)
        self.shrunk = {name for step in steps for part in step.parts if part.shrink for name in part.names}
        self.uploaded = frozenset(name for name in names_moved(method, self.world) if params[name].shared)
        self.train = split.train.to(machine.device)
        self.state = State(params, self.world, seed, machine.device, machine.dtype, mixing, self.train)
        self.by_row = self._averaged_by_row()
        self.server = ServerOptimizer(options, self.averaged)
        self.privacy = privacy(options.privacy)
        self.sampler = NegativeSampler(excluded.to(machine.device), split.num_items, method.negatives)
        self.footprint = Footprint(params, split.num_items, machine.bytes_per_value, machine.dense)
        self.engine: Engine = (
            LoopEngine(method, self.world, seed, machine.device, split.data)
            if machine.engine == "loop"
            else VectorEngine(method, self.world, seed, machine.device)
        )

    def round(self, number: int) -> RoundReport:
        """Run round `number` (from 1)."""
        clock = clock_on(self.machine.device)
        self.engine.recorder.renew()
        seen = self.seen(number)
        clients = self.participants(number)
        self.state.begin_round(clients, number)
        change = self._no_change()
        traffic = Traffic(self.state.shared, self.shrunk, self.uploaded, *self.besides())
        trained: list[tuple[Tensor, Tensor, Tensor]] = []
        for wave in self.waves(self.blocks(clients)):
            drawn = [self.samples(number, block) for block in wave]
            clock.lap("sample")
            trained += [self._train(samples, Context(number), change, traffic, clock) for samples in drawn]
        loss = self._finite_loss(trained, number)
        self.state.shared = {**self.state.shared, **self.server.apply(self.averaged, change.mean())}
        for name, mixtures in self.state.mixtures.items():
            mixtures.mix(self.state.reported)
            self.state.shared[name] = mixtures.mean()
        if self.method.server_step is not None:
            self.state.shared |= self.method.server_step(self.state.shared, partial(self._draw, number))
        self._move_others(seen, clients)
        clock.lap("server")
        return RoundReport(
            number, len(clients), loss, clock.seconds(), traffic.down, traffic.up, traffic.dense,
            sparsity(self.state.shared),
        )  # fmt: skip

    @property
    def averaged(self) -> Params:
        """The shared values that are one mean for all; what training does not move stays as it is anyway."""
        uploaded = {name: value for name, value in self.state.shared.items() if name in self.uploaded}
        return {name: value for name, value in uploaded.items() if name not in self.state.mixtures}

    def _averaged_by_row(self) -> frozenset[str]:
        """Names of tables whose rows are averaged over the clients that touched them."""
        chosen = self.options.row_mean
        tables = frozenset(name for name in self.averaged if self.state.params[name].rows)
        if chosen == "touched" and not tables:
            raise SettingError(
                f"federation setting row_mean='touched': the server averages no item table of {self.method.name}; "
                "expected method or all"
            )
        return tables if (self.method.row_mean if chosen == "method" else chosen) == "touched" else frozenset()

    def _no_change(self) -> MeanChange | RowWeightedChange:
        """The mean change before anybody has sent anything."""
        weigh = self.method.row_weights
        if weigh is None or self.options.row_mean != "method":
            return MeanChange(self.averaged, self.by_row)
        return RowWeightedChange(self.averaged, self.state.row_names, weigh)

    def _draw(self, number: int, name: str) -> Tensor:
        """A parameter's initial values, drawn anew after round `number`."""
        param, drawn_by = self.state.params[name], generator(self.seed, "initial:" + name, number)
        shape = (self.world.num_items, *param.shape) if param.rows else param.shape
        return param.initial.draw(shape, drawn_by).to(self.machine.device, self.machine.dtype)

    def besides(self) -> tuple[int, int]:
        """Bytes that a client receives and sends in a round besides shared values: means of mixtures, and reports."""
        means = (name for name, param in self.state.params.items() if param.common)
        reports = (value[0] for value in self.state.reported.values())
        return sum(dense_size(self.state.shared[name]) for name in means), sum(map(dense_size, reports))

    def seen(self, number: int) -> Seen:
        """What the server has seen of its clients as round `number` begins."""
        return Seen({name: value.clone() for name, value in self.state.reported.items()}, self.seed, number)

    def _move_others(self, seen: Seen, cohort: Tensor) -> None:
        """Clients that did not take part follow those that did, where the method has it so."""
        choosing = self.method.server_cohort
        if choosing is None or not 0 < len(cohort) < self.world.num_clients:
            return
        for name, move in choosing.moves(seen, cohort, self.state.reported).items():
            self.state.reported[name] += move
            self.state.own[name] += move

    def participants(self, number: int) -> Tensor:
        """Who takes part in a round."""
        chosen = participation(self.options.clients)
        wanted = chosen.wanted(self.world.num_clients)
        if self.method.server_cohort is not None and wanted is not None and wanted < self.world.num_clients:
            return self.method.server_cohort.choose(self.seen(number), wanted)
        return participants(chosen, self.seed, number, self.world.num_clients, self.machine.device)

    def blocks(self, clients: Tensor) -> list[Tensor]:
        """Clients that train side by side."""
        if not len(clients):
            return []
        samples = self.train.lengths[clients] * (1 + self.method.negatives)
        return plan(clients, samples, self.footprint, self.machine.block_bytes, self.machine.block_clients)

    def waves(self, blocks: list[Tensor]) -> list[list[Tensor]]:
        """Blocks whose samples are drawn together.

        Drawing makes the host wait for a GPU; drawn for many blocks at once, the host can prepare a block while the
        GPU still trains the last one. On a CPU there is nothing to gain.
        """
        if self.machine.device.type == "cpu":
            return [[block] for block in blocks]
        waves: list[list[Tensor]] = []
        room = 0
        for block in blocks:
            needed = int(self.train.lengths[block].sum()) * (1 + self.method.negatives) * BYTES_PER_SAMPLE
            if not waves or needed > room:
                waves.append([])
                room = self.machine.memory // 8
            waves[-1].append(block)
            room -= needed
        return waves

    def samples(self, number: int, clients: Tensor) -> Samples:
        """A round's training samples of some clients."""
        key = derive(self.seed, "negatives", number)
        return draw_samples(key, clients, self.train, self.sampler, self.machine.dtype, dense=self.machine.dense)

    def _train(
        self, samples: Samples, context: Context, change: MeanChange, traffic: Traffic, clock: Clock
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Train a block; returns its clients, their losses, and [values, clients] which of them are finite."""
        received = self.state.receive(samples, self._receiving(samples.clients, context.round))
        values = received.values
        sent = {name: values[name].clone() for name in self.averaged if name not in received.beside}
        losses, opened = self.engine.train(values, samples, context, self.state.row_names)
        rewritten = self._rewritten(samples, received, opened, context)
        # A sum is finite only if every term is: one cheap pass.
        sums = [losses, *(values[name].reshape(len(losses), -1).sum(1) for name in self.state.params)]
        finite = torch.isfinite(torch.stack(sums))
        self.state.keep(samples, values, rewritten)
        clock.lap("train")
        self._send(samples, received, sent, change, traffic, context.round)
        clock.lap("server")
        return samples.clients, losses, finite

    def _receiving(self, clients: Tensor, number: int) -> Tensor | None:
        """[B] who receives in this round; None where everybody does."""
        if self.options.receiving == 1.0:
            return None
        drawn = bits(derive(self.seed, "receiving", number), clients, torch.zeros_like(clients))
        return unit(drawn) < self.options.receiving

    def _rewritten(self, samples: Samples, received: Received, opened: tuple[Opened, ...], context: Context) -> Params:
        """Whole tables that openings rewrote, by name [B, m, ...], as they were before touched rows were trained."""
        if not opened:
            return {}
        params = self.state.params
        tables = {name: self.state.whole(name, samples.clients) for name, param in params.items() if param.rows}
        tables |= {params[name].beside: whole for name, whole in received.beside.items()} | received.common
        changed: Params = {}
        for one in opened:
            opening = self.engine.phases[one.phase].opening
            if opening is not None and self.engine.phases[one.phase].everywhere:
                open_here = partial(_opened, opening, replace(context, phase=one.phase))
                new = torch.vmap(open_here)({**one.values, **tables})
                changed |= {name: value for name, value in new.items() if name in tables}
                tables |= changed
        return changed

    def _send(
        self,
        samples: Samples,
        received: Received,
        sent: Params,
        change: MeanChange,
        traffic: Traffic,
        number: int,
    ) -> None:
        """Clients upload, and the server takes what arrives."""
        values = received.values
        traffic.add(len(samples.clients), sent if self.privacy is None else {}, values)
        differences = {name: torch.sub(values[name], value, out=value) for name, value in sent.items()}
        rows = {name: value for name, value in differences.items() if self.state.params[name].rows}
        whole = {name: value for name, value in differences.items() if name not in rows}
        for name, table in received.offered.items():
            whole[name] = self.state.whole(name, samples.clients) - table
        for name, before in self.state.reported.items():
            whole[name] = self.state.own[name][samples.clients] - before[samples.clients]
        upload = Upload(samples, rows, whole, self._weights(samples))
        if self.privacy is not None:
            upload = self.privacy.protect(upload, derive(self.seed, "privacy", number), self.world.num_items)
        change.add(upload)
        for name, value in self.state.reported.items():
            value[samples.clients] += upload.whole[name]
        for name, mixtures in self.state.mixtures.items():
            mixtures.take(samples.clients, received.offered[name] + upload.whole[name])

    def _weights(self, samples: Samples) -> Tensor:
        chosen = self.options.weighting
        chosen = self.method.weighting if chosen == "method" else chosen
        return samples.sizes if chosen == "samples" else torch.ones_like(samples.sizes)

    def _finite_loss(self, trained: list[tuple[Tensor, Tensor, Tensor]], number: int) -> float | None:
        """Mean loss over clients; names client and parameter where something is not finite."""
        if not trained:
            return None
        clients, losses = (torch.cat(column) for column in list(zip(*trained, strict=True))[:2])
        finite = torch.cat([fine for _, _, fine in trained], dim=1)
        if not bool(finite.all()):
            which, place = torch.nonzero(~finite)[0].tolist()
            name = ["the loss", *self.state.params][which]
            user = self.split.data.users[int(clients[place])]
            raise TrainingError(
                f"{self.method.name} diverged in round {number}: {name} of client {user} is not finite; "
                "lower the learning rate or the initial scale"
            )
        return float(losses.double().mean())


def _opened(opening: Opening, context: Context, p: Params) -> Params:
    return opening(p, context)
