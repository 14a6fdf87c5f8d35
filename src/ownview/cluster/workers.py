"""Clients that are shared out among workers; the server is here."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from ownview.base.errors import DeviceError, SettingError
from ownview.base.files import make_folder
from ownview.cluster.host import Agreed, Answer, Arrays, Order, as_arrays, as_tensors
from ownview.cluster.pool import Pool, WorkerDiedError, pool_of
from ownview.cluster.shards import cut, shard_data
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Workers as AskedWorkers
from ownview.federation.facts import OwnFacts
from ownview.federation.server import AggregationServer
from ownview.federation.tables.packing import joined, parted
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.robust import NONE
from ownview.messages.upload import Upload
from ownview.round.conduct import Round, Uploads
from ownview.round.local_fleet import LocalFleet
from ownview.seam.method import Federated
from ownview.seam.server import SUMS, Rule

_LIVES = 3
"""A worker that dies so often on the same work will not survive it."""

_SAVING_SHARE = 0.05
"""Saving may take this share of the time since the last time."""


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of work on all shards, kept for replay until workers have saved its results.

    Args:
        number: of all steps, from 1.
        what: `round`, `after_round` or `unpack`.
        shared: a promise of what is the same for all.
        orders: of every shard; of `unpack` promises of what its clients are to hold.
    """

    number: int
    what: str
    shared: Any
    orders: Sequence[Any]


class Workers(LocalFleet):
    """Clients that live in workers: shared values go down, partial sums come up a tree.

    What clients hold is fetched when it is asked for here. A worker that dies is replaced by one that reads what its
    clients held when they were last saved, does again what was done since, and goes on: the round ends the same.

    Args:
        terms: what they have agreed on with the server, on a machine with workers that share its memory.
        work: of all clients.
        method: of the federation.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        server: of the federation, for the size of what goes to and fro.
    """

    def __init__(
        self, terms: Terms, work: Work, method: Federated, split: Split, excluded: Ragged, server: AggregationServer
    ) -> None:
        super().__init__(terms, work)
        asked, machine = terms.machine.workers, terms.machine
        if asked is None:
            raise TypeError("a machine without workers needs no cluster")
        if terms.mixed:
            raise SettingError(
                f"--workers: the server of {method.name} holds the latest table of every single client, so that there "
                "is nothing to share out; run it without workers"
            )
        if terms.masked is not None and terms.masked.masks.real:
            raise SettingError(
                f"--workers: privacy={terms.options.privacy!r} puts masks on, which a simulation does in one process; "
                "expected masks=skipped in it (the sums are the same), or no workers"
            )
        if terms.masked is not None and terms.masked.groups > 1:
            raise SettingError(
                f"--workers: privacy={terms.options.privacy!r} compares groups, and workers send one sum; expected no "
                "groups in it, or no workers"
            )
        if terms.options.devices != "none":
            raise SettingError(
                f"--workers: devices={terms.options.devices!r} is simulated in one process; expected none"
            )
        combine = terms.server.combine
        if isinstance(combine, Rule) and combine.needs != SUMS:
            raise SettingError(
                f"--workers: the server of {method.name} needs {combine.needs} of uploads, and workers send sums"
            )
        if terms.options.robust != NONE:
            raise SettingError(
                f"--workers: robust={terms.options.robust!r} needs every upload, and workers send sums; expected none"
            )
        self.method, self.split, self.excluded, self.machine = method, split, excluded, machine
        self.fetched, self.saved_at, self.saving = True, time.perf_counter(), 0.0
        handed_over = self._handed_over(server, asked)
        self.pool = pool_of(asked, on_gpu=machine.device.type == "cuda", handed_over=handed_over)
        self.count = asked.count or self.pool.count
        if self.count > split.num_users:
            raise DeviceError(
                f"--workers {self.count}: there are {split.num_users} clients; expected at most as many workers"
            )
        self.places = cut(split.train.lengths, self.count)
        self.key, self.steps, self.log = uuid4().hex, 0, list[_Step]()
        folder = asked.folder or Path(tempfile.mkdtemp(prefix="ownview-shards-"))
        make_folder(folder)
        self.files = [folder.resolve() / f"{self.key}-{k}.safetensors" for k in range(self.count)]
        self.lives: list[int | None] = [None] * self.count
        weakref.finalize(self, _forget, self.pool, self.key, self.files, None if asked.folder else folder)

    def _handed_over(self, server: AggregationServer, asked: AskedWorkers) -> int:
        """Bytes on their way at once: the lists of all clients at first, later values down and sums up."""
        lists = {id(one): one for one in (self.split.train, self.excluded, self.split.timeline.items)}
        first = sum(one.values.nbytes + one.offsets.nbytes for one in lists.values())
        values = sum(value.nbytes for value in server.shared.values())
        sums = sum(value.nbytes for value in server.begin(1).pack().values())
        return first + 4 * (asked.count or 8) * (values + sums)

    # --- a round ---

    def ask(self, going: Round) -> Uploads:
        """Every shard does its part; their sums come up a tree, and single uploads do not come at all."""
        if going.rules:
            raise SettingError("--workers: uploads are added up where they are made, and no rule sees single ones")
        download = going.download(going.cohort)
        going.clock.lap("server")
        promises = self._step("round", download, going.cohort, answers=2)
        going.clock.lap("train")
        answers: list[Answer] = [self.pool.get(answer) for answer, _ in promises]
        going.total.merge(as_tensors(self._summed([sums for _, sums in promises]), self.machine.device))
        for answer in answers:
            going.traffic.merge(answer.receiving, answer.clients - answer.receiving, answer.bytes_up)
            going.server.take(self._noted(answer))
        losses = [(answer.loss, answer.clients) for answer in answers if answer.loss is not None]
        clients = sum(count for _, count in losses)
        going.loss = sum(loss * count for loss, count in losses) / clients if clients else None
        yield from ()

    def tell(self, going: Round) -> None:
        """The round is over; now and then workers save what their clients hold."""
        super().tell(going)
        if time.perf_counter() - self.saved_at > self.saving / _SAVING_SHARE:
            self.save()

    def receive(self, download: Download, clients: Tensor) -> None:
        """Clients work on what the server has after a round."""
        self._step("after_round", download, clients)

    def _step(self, what: str, download: Download, cohort: Tensor, answers: int = 1) -> list[Any]:
        """Run a step on every shard and wait for all; returns promises of the results."""
        self.fetched = False
        return self._do(what, as_arrays(download.values), self._orders(download, cohort), answers)

    def _do(self, what: str, shared: Arrays, orders: Sequence[Any], answers: int = 1) -> list[Any]:
        """Once all have done it, it is replayed to the successor of a worker that dies."""
        self.steps += 1
        step = _Step(self.steps, what, self.pool.put(shared), orders)
        promises = self._everywhere(lambda k: self._done(k, step, answers))
        self.log.append(step)
        return promises

    def _done(self, worker: int, step: _Step, answers: int = 1) -> Any:
        return self.pool.ask(worker, step.what, self.key, step.shared, step.orders[worker], answers=answers)

    def _orders(self, download: Download, cohort: Tensor) -> list[Order]:
        """Each shard's request; the cohort is ascending, so that a shard's part of it is contiguous."""
        cohort, orders = cohort.cpu(), []
        for here in self.places:
            first, last = torch.searchsorted(cohort, torch.tensor([here.start, here.stop])).tolist()
            moves = as_arrays({name: value[first:last] for name, value in download.moves.items()})
            receives = None if download.receives is None else download.receives[first:last].cpu().numpy()
            orders.append(Order(download.round, (cohort[first:last] - here.start).numpy(), moves, receives))
        return orders

    def _noted(self, answer: Answer) -> Upload:
        """An upload with what the server needs of single clients; sums are separate."""
        device = self.machine.device
        tensors = as_tensors({"clients": answer.senders, "samples": answer.samples}, device)
        nothing = tensors["clients"].new_zeros(len(answer.senders), 0)
        reported = as_tensors(answer.reported, device)
        return Upload(tensors["clients"], tensors["samples"], nothing, nothing.bool(), whole=reported)

    def _summed(self, sums: list[Any]) -> Arrays:
        """Partial sums of all workers as one: of every two, the first adds the second's to its own."""
        step = 1
        while step < len(sums):
            firsts = [k for k in range(0, len(sums), 2 * step) if k + step < len(sums)]
            added = self._everywhere(partial(self._added, sums, step), firsts)
            for k, promise in zip(firsts, added, strict=True):
                sums[k] = promise
            step *= 2
        found: Arrays = self.pool.get(sums[0])
        return found

    def _added(self, sums: list[Any], step: int, worker: int) -> Any:
        return self.pool.ask(worker, "add", sums[worker], sums[worker + step])

    # --- workers that die ---

    def _everywhere(self, ask: Callable[[int], Any], workers: Sequence[int] | None = None) -> list[Any]:
        """Ask workers, all of them where None, and wait for all; who dies is replaced, and the other is asked again."""
        chosen = range(self.count) if workers is None else workers
        return [self._waited(k, promise, ask) for k, promise in [(k, self._first(k, ask)) for k in chosen]]

    def _first(self, worker: int, ask: Callable[[int], Any]) -> Any:
        """A promise; None where the worker has died meanwhile."""
        try:
            self._settle(worker)
        except WorkerDiedError:
            return None
        return ask(worker)

    def _waited(self, worker: int, promise: Any, ask: Callable[[int], Any]) -> Any:
        for _ in range(_LIVES):
            try:
                if promise is None:
                    self._settle(worker)
                    promise = ask(worker)
                self.pool.get(promise[0] if isinstance(promise, list) else promise)
                return promise
            except WorkerDiedError as error:
                why, promise = str(error).strip().splitlines()[0], None
                if self.lives[worker] in (None, self.pool.lives[worker]):
                    self.pool.replace(worker)
        raise DeviceError(
            f"worker {worker + 1} of {self.count} died {_LIVES} times in a row ({why}); "
            "expected memory enough for its clients: lower --workers or --memory"
        )

    def _settle(self, worker: int) -> None:
        """Give a new worker its shard: the last saved state, and the steps since."""
        if self.lives[worker] == self.pool.lives[worker]:
            return
        self.lives[worker] = self.pool.lives[worker]
        split, alone = self.split, replace(self.machine, workers=None, memory=self.machine.memory // self.count)
        terms = self.terms
        facts = OwnFacts.of(split, terms.client.params)
        data = shard_data(split.train, self.excluded, split.timeline, split.data.users, facts, self.places[worker])
        agreed: Agreed = (self.method, terms.world, terms.options, terms.seed, alone, terms.noise)
        saved = self.pool.get(self.pool.ask(worker, "begin", self.key, agreed, data, self.files[worker]))
        for step in (one for one in self.log if one.number > saved):
            self.pool.get(self._done(worker, step))

    def save(self) -> None:
        """Every worker writes what its clients hold to a file of its own; what was done before need not be kept."""
        start = time.perf_counter()
        self._everywhere(lambda k: self.pool.ask(k, "save", self.key, self.steps, self.files[k]))
        self.log.clear()
        self.saved_at = time.perf_counter()
        self.saving = self.saved_at - start

    # --- what clients hold, here ---

    @property
    def work(self) -> Work:
        """The work of all clients, with the newest values, fetched first."""
        if not self.fetched:
            packs = self._everywhere(lambda k: self.pool.ask(k, "pack", self.key))
            here = torch.device("cpu")
            self._work.home.clients.unpack(joined([as_tensors(self.pool.get(one), here) for one in packs]))
            self.fetched = True
        return self._work

    def hand_out(self) -> None:
        """Give all workers what clients hold here."""
        held = self.work.home.clients.pack()
        self._do("unpack", {}, [self.pool.put(as_arrays(parted(held, here))) for here in self.places])
        self.save()


def _forget(pool: Pool, key: str, files: Sequence[Path], folder: Path | None) -> None:
    """Free the shards of a federation."""
    for file in files:
        file.unlink(missing_ok=True)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    if pool.ray.is_initialized():
        for worker in range(len(pool.workers)):
            pool.ask(worker, "drop", key)
