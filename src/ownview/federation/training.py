"""The work of clients that train: begin with what they received, train, keep, and send what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.base.randomness import derive
from ownview.data.negatives import NegativeSampler
from ownview.engine.blocks import BYTES_PER_SAMPLE, Footprint, plan
from ownview.engine.engines import LoopEngine, engine
from ownview.engine.local import Opened, open_with
from ownview.engine.samples import Samples, draw_samples
from ownview.federation.messages import Download, Upload
from ownview.federation.soundness import names_moved
from ownview.federation.work import Household
from ownview.seam.training import Context, Params


class TrainingWork:
    """Clients that train, block by block."""

    def __init__(self, home: Household) -> None:
        self.home, self.work = home, home.client.training
        machine, params = home.machine, home.client.params
        self.engine = engine(home.client, home.name, home.seed, machine, home.users)
        self.sampler = NegativeSampler(home.excluded, home.world.num_items, self.work.negatives, home.users)
        self.footprint = Footprint(params, home.world.num_items, machine.bytes_per_value, machine.dense)
        moved = names_moved(home.client)
        self.sent = frozenset(name for name, param in params.items() if param.sends and name in moved)
        self.seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def blocks(self, clients: Tensor) -> Sequence[Tensor]:
        """Clients that train side by side."""
        if not len(clients):
            return []
        samples = self.home.train.lengths[clients] * (1 + self.work.negatives)
        machine = self.home.machine
        return plan(clients, samples, self.footprint, machine.block_bytes, machine.block_clients)

    def waves(self, blocks: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """Blocks whose samples are drawn together.

        Drawing makes the host wait for a GPU; drawn for many blocks at once, the host can prepare a block while the
        GPU still trains the last one. On a CPU there is nothing to gain.
        """
        machine = self.home.machine
        if machine.device.type == "cpu":
            return [[block] for block in blocks]
        waves: list[list[Tensor]] = []
        room = 0
        for block in blocks:
            needed = int(self.home.train.lengths[block].sum()) * (1 + self.work.negatives) * BYTES_PER_SAMPLE
            if not waves or needed > room:
                waves.append([])
                room = machine.memory // 8
            waves[-1].append(block)
            room -= needed
        return waves

    def samples(self, number: int, block: Tensor) -> Samples:
        """A round's training samples of some clients."""
        home = self.home
        key, identities, machine = derive(home.seed, "negatives", number), home.clients.identities[block], home.machine
        return draw_samples(
            key, block, identities, home.train, self.sampler, machine.dtype, dense=machine.dense, pairs=self.work.pairs
        )

    def do(self, samples: Samples, download: Download) -> Upload:
        """Train a block, keep what is its clients' own, and send what changed."""
        clients, params = self.home.clients, self.home.client.params
        context = Context(download.round)
        opened = clients.open(samples, download)
        values = opened.values
        begun = {name: values[name].clone() for name in self.sent if params[name].role.sends == "change"}
        losses, openings = self.engine.train(values, samples, context, clients.row_names)
        rewritten = self._rewritten(samples, opened.beside, openings, context)
        # A sum is finite only if every term is: one cheap pass.
        sums = [losses, *(values[name].reshape(len(losses), -1).sum(1) for name in params if name in values)]
        self.seen.append((samples.clients, losses, torch.isfinite(torch.stack(sums))))
        clients.keep_trained(samples, values, rewritten)
        return self._upload(samples, values, begun)

    def _upload(self, samples: Samples, values: Params, begun: Params) -> Upload:
        clients, params = self.home.clients, self.home.client.params
        changes = {name: torch.sub(values[name], value, out=value) for name, value in begun.items()}
        rows = {name: value for name, value in changes.items() if params[name].rows}
        whole = {name: value for name, value in changes.items() if name not in rows}
        for name in (one for one in self.sent if params[one].role.sends == "whole"):
            whole[name] = clients.whole(name, samples.clients) if params[name].rows else values[name]
        touched = samples.sampled_rows if self.home.machine.dense else samples.real_rows
        return Upload(samples.identities, samples.sizes, samples.items, touched, rows, whole)

    def _rewritten(self, samples: Samples, beside: Params, openings: tuple[Opened, ...], context: Context) -> Params:
        """Whole tables that openings rewrote, by name [B, m, ...], as they were before touched rows were trained."""
        if not openings:
            return {}
        tables = {name: self.home.clients.whole(name, samples.clients) for name in self.home.clients.tables} | beside
        changed: Params = {}
        for one in openings:
            phase = self.engine.phases[one.phase]
            if phase.opening is not None and phase.everywhere:
                open_here = partial(open_with, phase.opening, replace(context, phase=one.phase))
                new = torch.vmap(open_here)({**one.values, **tables})
                changed |= {name: value for name, value in new.items() if name in tables}
                tables |= changed
        return changed

    def loss(self, number: int) -> float | None:
        """Mean loss over clients; names client and parameter where something is not finite."""
        self.engine.recorder.renew()
        if not self.seen:
            return None
        clients, losses = (torch.cat(column) for column in list(zip(*self.seen, strict=True))[:2])
        finite = torch.cat([fine for _, _, fine in self.seen], dim=1)
        self.seen = []
        if not bool(finite.all()):
            which, place = torch.nonzero(~finite)[0].tolist()
            name = ["the loss", *self.home.client.params][which]
            raise TrainingError(
                f"{self.home.name} diverged in round {number}: {name} of client "
                f"{self.home.users[int(clients[place])]} is not finite; lower the learning rate or the initial scale"
            )
        return float(losses.double().mean())

    def rehearsal(self, clients: Tensor, number: int, download: Download) -> Callable[[], object]:
        """One client's training in a round, ready to run on copies."""
        home, samples = self.home, self.samples(number, clients)
        alone = LoopEngine(home.client, home.name, home.seed, home.machine.device, home.users)
        values = home.clients.open(samples, download).values
        return partial(alone.train, values, samples, Context(number), home.clients.row_names)

    def after_round(self, download: Download, clients: Tensor) -> None:
        """Nothing: clients that train have done everything in the round."""
