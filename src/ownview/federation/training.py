"""The work of clients that train: start from the download, train, store private values, send changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.base.randomness import derive
from ownview.data.negatives import NegativeSampler
from ownview.engine.blocks import Footprint
from ownview.engine.engines import LoopEngine, engine
from ownview.engine.epochs import open_with
from ownview.engine.local import Opened
from ownview.engine.planning import plan
from ownview.engine.prefetch import Attempt, Prefetch
from ownview.engine.samples import Foreseen, Samples, draw_samples
from ownview.engine.threads import in_threads
from ownview.federation.checks.soundness import names_moved
from ownview.federation.work import Household
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.seam.training import Context, Params

_BLOCKS_A_THREAD = 4
"""On a CPU, in a wave: so many that no thread waits long for another at its end."""


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
        self.cut: tuple[Tensor, list[Tensor]] | None = None
        self.lasting = self.again = False
        self.waits_for_gpu = machine.device.type == "cuda" and not machine.dense
        self.ahead: Prefetch | None = None

    def blocks(self, clients: Tensor) -> Sequence[Tensor]:
        """Clients that train side by side."""
        if not len(clients):
            return []
        host = clients.cpu()
        self.again = self.cut is not None and torch.equal(self.cut[0], host)
        if self.cut is not None and self.again:
            return self.cut[1]
        self.ahead = None
        samples = self.home.train.host_lengths_of(host) * (1 + self.work.negatives)
        found = plan(clients, samples, self.footprint, self.home.machine, self.work.batch_size)
        if clients.is_cuda:  # where a round is short, and memory for a number a client is there
            self.cut = host, found
        return found

    def waves(self, blocks: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """Blocks that are drawn and trained together: on a CPU some for every thread, on a GPU what memory allows.

        Drawing makes the host wait for a GPU; drawn for many blocks at once, it waits once. Where all blocks are one
        wave, what a GPU recorded of it is kept for the next round.
        """
        machine = self.home.machine
        on_cpu = machine.device.type == "cpu"
        most = self._on_cpu if on_cpu else len(blocks)
        waves: list[list[Tensor]] = []
        room = 0
        first = torch.stack([block[0] for block in blocks]).cpu() if len(blocks) else torch.arange(0)
        busiest = (self.home.train.host_lengths_of(first) * (1 + self.work.negatives)).tolist()
        for block, samples in zip(blocks, busiest, strict=True):
            needed = self.footprint.of(samples) * len(block)
            if not waves or needed > room or len(waves[-1]) == most:
                waves.append([])
                room = machine.memory // 2
            waves[-1].append(block)
            room -= needed
        if not on_cpu:  # where nothing is recorded
            self.lasting = len(waves) == 1
        return waves

    @property
    def _on_cpu(self) -> int:
        """Most blocks of a wave on a CPU."""
        threads = torch.get_num_threads() if self.home.machine.engine != "loop" else 1
        return _BLOCKS_A_THREAD * threads if threads > 1 else 1

    def samples(self, number: int, block: Tensor) -> Samples:
        """A round's training samples of some clients."""
        return self._drawn(self._key(number), block, None)

    def draw(self, number: int, wave: Sequence[Tensor]) -> Sequence[Samples]:
        """A round's training samples of a wave; the host waits for a GPU once, or not at all."""
        if not self.waits_for_gpu:
            return [self.samples(number, block) for block in wave]
        attempt = None if self.ahead is None else self.ahead.taken(number)
        attempt = attempt or self._attempt(self._key(number), wave, self._foreseen(wave))
        return [
            one if fits else self.samples(number, block)
            for one, fits, block in zip(attempt.samples, attempt.fits(), wave, strict=True)
        ]

    def _look_ahead(self, number: int) -> None:
        """Prefetch samples of the next round, if the same clients are likely to train in it, in one wave again."""
        if not (self.waits_for_gpu and self.lasting and self.again and self.cut is not None):
            return
        if self.ahead is None:
            self.ahead = Prefetch(self.cut[1], self._foreseen(self.cut[1]), self.engine.recorder)
        self.ahead.begin(number, self._key(number), self._attempt)

    def _foreseen(self, wave: Sequence[Tensor]) -> list[Foreseen]:
        places = torch.split(torch.cat(list(wave)).cpu(), [len(block) for block in wave])
        return [Foreseen.of(place, self.home.train, self.sampler) for place in places]

    def _attempt(self, key: int | Tensor, wave: Sequence[Tensor], foreseen: Sequence[Foreseen]) -> Attempt:
        """Samples of a wave in as many rows as are likely to suffice: the exact number would need a synchronisation."""
        drawn = [self._drawn(key, block, one) for block, one in zip(wave, foreseen, strict=True)]
        return Attempt(drawn, torch.stack([one.num_rows.max() for one in drawn]), [one.rows for one in foreseen])

    def _key(self, number: int) -> int:
        return derive(self.home.seed, "negatives", number)

    def _drawn(self, key: int | Tensor, block: Tensor, foreseen: Foreseen | None) -> Samples:
        home, machine = self.home, self.home.machine
        return draw_samples(
            key, block, home.clients.identities[block], home.train, self.sampler, machine.dtype, dense=machine.dense,
            pairs=self.work.pairs, foreseen=foreseen,
        )  # fmt: skip

    def do(self, samples: Samples, download: Download) -> Upload:
        """Train a block, store private values, and return changes as uploads."""
        return self.do_all([samples], [download])[0]

    def do_all(self, drawn: Sequence[Samples], downloads: Sequence[Download]) -> Sequence[Upload]:
        """The same for the blocks of a wave, together."""
        clients, params = self.home.clients, self.home.client.params
        context = Context(downloads[0].round)
        self._look_ahead(context.round + 1)
        opened = [clients.open(samples, download) for samples, download in zip(drawn, downloads, strict=True)]
        changing = [name for name in self.sent if params[name].role.sends == "change"]
        begun = [{name: one.values[name].clone() for name in changing} for one in opened]
        stacks = [(one.values, samples) for one, samples in zip(opened, drawn, strict=True)]
        trained = self.engine.train_all(stacks, context, clients.row_names, lasting=self.lasting)
        openings = [made for _, made in trained]
        tables = self._all_rewritten(drawn, [one.beside for one in opened], openings, context)
        uploads = []
        for samples, one, before, (losses, _), rewritten in zip(drawn, opened, begun, trained, tables, strict=True):
            values = one.values
            # A sum is finite only if every term is: one cheap pass.
            sums = [losses, *(values[name].reshape(len(losses), -1).sum(1) for name in params if name in values)]
            self.seen.append((samples.clients, losses, torch.isfinite(torch.stack(sums))))
            clients.keep_trained(samples, values, rewritten)
            uploads.append(self._upload(samples, values, before))
        return uploads

    def _upload(self, samples: Samples, values: Params, begun: Params) -> Upload:
        clients, params = self.home.clients, self.home.client.params
        changes = {name: torch.sub(values[name], value, out=value) for name, value in begun.items()}
        rows = {name: value for name, value in changes.items() if params[name].rows}
        whole = {name: value for name, value in changes.items() if name not in rows}
        for name in (one for one in self.sent if params[one].role.sends == "whole"):
            # A copy: the next round may train in the same tensors.
            whole[name] = clients.whole(name, samples.clients) if params[name].rows else values[name].clone()
        touched = samples.sampled_rows if self.home.machine.dense else samples.real_rows
        counted = samples.sizes.clamp(max=self.work.most_samples(self.home.world.num_items))
        return Upload(samples.identities, counted, samples.items, touched, rows, whole)

    def _all_rewritten(
        self,
        drawn: Sequence[Samples],
        beside: Sequence[Params],
        openings: Sequence[tuple[Opened, ...]],
        context: Context,
    ) -> Sequence[Params]:
        """Rewrite every block of a wave; on a CPU every core has one."""
        if not any(openings):
            return [{} for _ in drawn]
        stacks = zip(drawn, beside, openings, strict=True)
        work = [partial(self._rewritten, *stack, context) for stack in stacks]
        return in_threads(work) if self.home.machine.device.type == "cpu" else [piece() for piece in work]

    def _rewritten(self, samples: Samples, beside: Params, openings: tuple[Opened, ...], context: Context) -> Params:
        """Whole tables that openings rewrote, by name [B, m, ...], as they were before touched rows were trained."""
        held = self.home.clients
        tables = {name: held.whole(name, samples.clients) for name in held.tables}
        tables |= beside | held.data_tables(samples.clients)
        changed: Params = {}
        for one in openings:
            phase = self.engine.phases[one.phase]
            if phase.opening is not None and phase.everywhere:
                open_here = partial(open_with, phase.opening, replace(context, phase=one.phase))
                new = torch.vmap(open_here)({**one.values, **tables})
                changed |= {name: value for name, value in new.items() if name in held.tables}
                tables |= changed
        return changed

    def loss(self, number: int) -> float | None:
        """Mean loss over clients; names client and parameter where something is not finite."""
        self.engine.renew()
        if not self.seen:
            return None
        clients, losses = (torch.cat(column) for column in list(zip(*self.seen, strict=True))[:2])
        finite = torch.cat([fine for _, _, fine in self.seen], dim=1)
        self.seen = []
        if not bool(finite.all()):
            which, place = torch.nonzero(~finite)[0].tolist()
            name = ["the loss", *self.home.client.params][which]
            also = " (in a loss of your own 0 / 0 or log 0 may be why: docs/write-a-method.md)" if number == 1 else ""
            raise TrainingError(
                f"{self.home.name} diverged in round {number}: {name} of client {self.home.users[int(clients[place])]} "
                f"is not finite; lower the learning rate or the initial scale{also}"
            )
        return float(losses.double().mean())

    def rehearsal(self, clients: Tensor, number: int, download: Download) -> Callable[[], object]:
        """One client's training in a round, ready to run on copies."""
        home, samples = self.home, self.samples(number, clients)
        alone = LoopEngine(home.client, home.name, home.seed, home.machine.device, home.users)
        values = home.clients.open(samples, download).values
        return partial(alone.train, values, samples, Context(number), home.clients.row_names)

    def after_round(self, download: Download, clients: Tensor) -> None:
        """Does nothing: clients that train have no work after a round."""
