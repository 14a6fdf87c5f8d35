"""Two engines over one training loop: a stack of clients at once, and one client at a time. Equal up to rounding."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from ownview.base.errors import OwnviewError, TrainingError
from ownview.base.failures import lacks_memory
from ownview.base.memory.freed import keep_freed_memory
from ownview.data.interactions import IdArray
from ownview.engine import compiled
from ownview.engine.compiled import Compiler, by_pytorch
from ownview.engine.local import Fit, Opened, Plan, Trained
from ownview.engine.machine import Machine
from ownview.engine.recordings import QUEUES, Pool, Recorder, queue
from ownview.engine.samples import Samples
from ownview.engine.step_runs import Runs
from ownview.engine.threads import in_threads
from ownview.seam.client import Client
from ownview.seam.training import Context, Params

Stack = tuple[Params, Samples]
"""Values of some clients by name, and their samples."""


class Engine(ABC):
    """Trains a stack of clients.

    Args:
        client: the method's.
        name: of the method, for errors.
        seed: of the run.
        device: where it runs.
        users: whose clients they are, by position, for errors.
        preparing: whether it runs `before_predicting` instead of a round's work.
    """

    def __init__(
        self, client: Client, name: str, seed: int, device: torch.device, users: IdArray, *, preparing: bool = False
    ) -> None:
        self.client, self.name, self.seed, self.device, self.users = client, name, seed, device, users
        self.phases = (*client.phases, *client.before_predicting)
        first = len(client.phases)
        self.numbers = range(first, len(self.phases)) if preparing else range(first)
        self.recorder = Recorder(device)
        self.compiler: Compiler | None = None
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

    def train_all(
        self, stacks: Sequence[Stack], context: Context, tables: frozenset[str], *, lasting: bool = False
    ) -> list[Trained]:
        """Train several stacks of a round: one after the other, unless an engine knows better.

        Args:
            stacks: see `train`; the values of each are in its `params` afterwards, maybe in other tensors.
            context: of the round.
            tables: the names of parameters with rows.
            lasting: whether stacks of these sizes are likely to recur, and memory suffices to cache them.
        """
        return [self.train(params, samples, context, tables) for params, samples in stacks]

    def renew(self) -> None:
        """Free memory that only the last round needed."""
        self.recorder.renew()

    def _plan(self, tables: frozenset[str]) -> Plan:
        work = self.client.training
        return Plan(
            self.phases, self.numbers, work.batch_size, 1 + work.negatives, self.seed, self.recorder, tables,
            self.compiler,
        )  # fmt: skip

    def _batches(self, samples: Samples) -> list[int]:
        return [math.ceil(size / self.client.training.batch_size) for size in samples.host_sizes]


class VectorEngine(Engine):
    """A stack at once, by `torch.vmap`; clients share no parameter, so their losses may be summed.

    Several stacks are at work at once: on a GPU the kernels of one fill the gaps between those of another, on a CPU
    every core has one. PyTorch by itself shares a stack's operations out among the cores, one by one, which gains less.
    """

    held: dict[tuple[int, tuple[int, ...]], Fit]

    def __init__(
        self, client: Client, name: str, seed: int, device: torch.device, users: IdArray, *, preparing: bool = False
    ) -> None:
        super().__init__(client, name, seed, device, users, preparing=preparing)
        self.held, self.used = {}, set[tuple[int, tuple[int, ...]]]()
        self.at_once = device.type == "cuda"
        # Halves of the samples are other ones in every round, and are not written into the same tensors.
        self.may_last = all(self.phases[number].part == "all" for number in self.numbers)

    def train(self, params: Params, samples: Samples, context: Context, tables: frozenset[str]) -> Trained:
        """All together."""
        with self._named(context, samples):
            return Fit(self.client, params, samples, Runs.of(self._batches(samples)), self._plan(tables)).run(
                context.round
            )

    def train_all(
        self, stacks: Sequence[Stack], context: Context, tables: frozenset[str], *, lasting: bool = False
    ) -> list[Trained]:
        """All stacks concurrently; on a GPU in tensors that are cached for the next round if `lasting`."""
        if not self.at_once:
            work = [partial(self.train, *stack, context, tables) for stack in stacks]
            alone = self.compiler is not None and not compiled.COMPILES_BESIDE_THREADS
            return [piece() for piece in work] if alone else in_threads(work)
        fits = [self._fit(place, *stack, tables, lasting=lasting) for place, stack in enumerate(stacks)]
        with self._named(context, *(samples for _, samples in stacks)), self._aside(len(fits)) as streams:
            # The busiest stack, which takes longest, begins; they take turns, so that none has to wait for the host.
            at_work = [(fit.pieces(context.round), one) for fit, one in zip(fits, streams, strict=True)][::-1]
            while at_work:
                at_work = [one for one in at_work if _goes_on(*one)]
        return [fit.trained for fit in fits]

    @contextmanager
    def _aside(self, count: int) -> Iterator[Sequence[torch.cuda.Stream | None]]:
        """Side streams, ordered after pending work; later work on the main stream waits for them."""
        if self.device.type == "cpu":
            yield [None] * count
            return
        here = torch.cuda.current_stream(self.device)
        aside = [queue(self.device, number) for number in range(min(count, QUEUES))]
        for one in aside:
            one.wait_stream(here)
        try:
            yield [aside[place % QUEUES] for place in range(count)]
        finally:
            for one in aside:
                here.wait_stream(one)

    def renew(self) -> None:
        """Drop cached stacks that this round did not use."""
        self.held = {key: fit for key, fit in self.held.items() if key in self.used}
        self.used.clear()
        super().renew()

    def _fit(self, place: int, params: Params, samples: Samples, tables: frozenset[str], *, lasting: bool) -> Fit:
        """Tensors and recordings of a stack: cached, or new ones."""
        key = (place, samples.host_sizes)
        waiting = self.held.get(key)
        if waiting is not None and waiting.takes(params, samples):
            self.used.add(key)
            waiting.load(params, samples)
            return waiting
        lasting = lasting and self.may_last
        if lasting:  # later rounds write here: no aliases
            params |= {name: value.clone(memory_format=torch.contiguous_format) for name, value in params.items()}
            samples = samples.copied()
        fit = Fit(
            self.client, dict(params), samples, Runs.of(self._batches(samples)), self._plan(tables), Pool(self.device),
            lasting=lasting,
        )  # fmt: skip
        if lasting:
            self.held[key] = fit
            self.used.add(key)
        return fit

    @contextmanager
    def _named(self, context: Context, *samples: Samples) -> Iterator[None]:
        """Add method and round to errors raised inside."""
        try:
            yield
        except Exception as error:
            if lacks_memory(error):
                raise
            blocks = " and ".join(f"a block of {len(one.host_sizes)}" for one in samples)
            raise TrainingError(
                f"{self.name} failed in round {context.round} on {blocks} clients: {error}; "
                "run it with --engine loop to see on which client"
            ) from error


def _goes_on(pieces: Iterator[None], stream: torch.cuda.Stream | None) -> bool:
    """Ask for the next piece of work; False where there is none."""
    with torch.cuda.stream(stream):
        return next(pieces, _NOTHING) is not _NOTHING


_NOTHING = object()


class CompiledEngine(VectorEngine):
    """The same with steps that are compiled. Compiling takes its time, which long runs win back."""

    def __init__(
        self, client: Client, name: str, seed: int, device: torch.device, users: IdArray, *, preparing: bool = False
    ) -> None:
        super().__init__(client, name, seed, device, users, preparing=preparing)
        self.compiler = Compiler(client, partial(by_pytorch, device))
        self.recorder.rehearses = True


class LoopEngine(Engine):
    """One client at a time, exactly as a device would run it. Slow, plain, the reference; errors name the client."""

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
            return Fit(self.client, values, mine, Runs.alone(batches), self._plan(tables)).run(context.round)
        except OwnviewError:
            raise
        except Exception as error:
            if lacks_memory(error):
                raise
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
    return _ENGINES[machine.engine](client, name, seed, machine.device, users, preparing=preparing)


_ENGINES: dict[str, type[Engine]] = {"vector": VectorEngine, "loop": LoopEngine, "compiled": CompiledEngine}


def _stacked(same: list[Opened]) -> Opened:
    """One phase's opening of every client, as one of the stack."""
    values = {name: torch.stack([one.values[name] for one in same]) for name in same[0].values}
    return Opened(same[0].phase, values)
