"""The only client training loop. One client alone and a stack of clients run through the same lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from ownview.base.randomness import derive
from ownview.engine.compiled import CompiledStep, Compiler
from ownview.engine.epochs import Epoch, NotedContext, loss_of, open_with
from ownview.engine.recordings import Pool, Recorder, Repeated
from ownview.engine.samples import Samples, half_of, random_order
from ownview.engine.step_runs import Runs
from ownview.engine.steps import Loss, PlainStep, StepAtWork, shrunk
from ownview.engine.windows import Window
from ownview.seam.client import Client
from ownview.seam.training import Params, Phase, Step


class EarlyStop:
    """Runs epochs; a client stops after the first one that changes its running mean loss too little.

    The running mean is over all epochs so far, m_e = (sum of the losses of all samples of epochs 1 to e) / (e S).
    A client stops after epoch e > 1 where |m_e - m_(e-1)| < tolerance |m_(e-1)|, and keeps the values of that epoch:
    changes by later epochs of its stack are undone. Its optimiser goes on, and is not read again.

    Args:
        tolerance: 0 for no early stop.
        values: what an epoch moves, with the client axis in front, or one client's.
        total_loss: [B] or [], to which an epoch adds the losses of all samples.
        sizes: [B] or [] S, samples of each client.
    """

    def __init__(self, tolerance: float, values: Sequence[Tensor], total_loss: Tensor, sizes: Tensor) -> None:
        self.tolerance, self.values, self.total_loss, self.sizes = tolerance, values, total_loss, sizes
        self.working = torch.ones_like(sizes, dtype=torch.bool)
        self.epochs = torch.zeros_like(sizes)
        self.last = torch.full_like(total_loss, torch.inf)

    def take(self, epoch: Callable[[], None]) -> None:
        """One more epoch, and who stays at work after it."""
        if self.tolerance == 0:
            epoch()
            self.epochs += 1
            return
        held = [(value, value.clone()) for value in (*self.values, self.total_loss)]
        epoch()
        for value, before in held:
            working = self.working.reshape(self.working.shape + (1,) * (value.dim() - self.working.dim()))
            value.copy_(torch.where(working, value, before))
        self.epochs += self.working
        mean = self.mean_loss()
        self.working &= (mean - self.last).abs() >= self.tolerance * self.last.abs()
        self.last.copy_(mean)

    @property
    def goes_on(self) -> bool:
        """Whether any client is at work; on a GPU the host does not wait to learn it."""
        return self.tolerance == 0 or self.working.device.type != "cpu" or bool(self.working.any())

    def restart(self) -> None:
        """Reset to the state before the first epoch."""
        self.working.fill_(value=True)
        self.epochs.zero_()
        self.last.fill_(torch.inf)

    def mean_loss(self) -> Tensor:
        """[B] or [] mean over the samples of the epochs a client took part in; 0 for a client without samples."""
        return self.total_loss / (self.sizes * self.epochs).clamp(min=1)


@dataclass(frozen=True, eq=False)
class Opened:
    """Record of a phase's opening, to be applied later to rows that are not at hand.

    Args:
        phase: its number.
        values: of parameters without rows, at the opening.
    """

    phase: int
    values: Params


Trained = tuple[Tensor, tuple[Opened, ...]]
"""[B] or [] mean loss of each client over the epochs it took part in of the last phase that has any, and the openings
there were."""


@dataclass(frozen=True)
class Plan:
    """What local training does in every round.

    Args:
        phases: of the client, and what it does before it predicts.
        numbers: of the phases that run.
        batch_size: samples in a batch; the last batch of an epoch may be smaller.
        group: samples that belong together, a positive and its negatives.
        seed: of the run; with the round, phase, epoch and client it gives the order of samples.
        recorder: repeats epochs.
        tables: names of parameters with rows.
        compiler: of steps; None where they run plainly.
    """

    phases: tuple[Phase, ...]
    numbers: range
    batch_size: int
    group: int
    seed: int
    recorder: Recorder
    tables: frozenset[str]
    compiler: Compiler | None = None


class Fit:
    """Local training of a stack of clients, or of one, in tensors that stay where they are.

    On a GPU a round's work is recorded and replayed in later rounds, on the tensors' values of that time.

    Args:
        client: the method's.
        params: values with the client axis in front, or one client's without it; trained in place.
        samples: likewise.
        runs: which clients work at which batch.
        plan: what is done.
        pool: memory that recorded work has to itself; None for the recorder's, where stacks work one after the other.
        lasting: whether what is recorded is for other rounds too.
    """

    def __init__(
        self, client: Client, params: Params, samples: Samples, runs: Runs, plan: Plan, pool: Pool | None = None,
        *, lasting: bool = False,
    ) -> None:  # fmt: skip
        self.client, self.params, self.samples, self.runs, self.plan = client, params, samples, runs, plan
        self.lasting = lasting
        self.pool = plan.recorder.pool if pool is None else pool
        self.held: dict[int, _PhaseAtWork] = {}
        self.losses = torch.zeros_like(samples.sizes, dtype=samples.labels.dtype)
        self.opened: list[Opened] = []

    def takes(self, params: Params, samples: Samples) -> bool:
        """Whether other values and samples have the shapes of these tensors."""
        mine = {**self.params, "": self.samples.rows, " ": self.samples.partners}
        others = {**params, "": samples.rows, " ": samples.partners}
        return mine.keys() == others.keys() and all(
            (value.shape, value.dtype) == (others[name].shape, others[name].dtype) for name, value in mine.items()
        )

    def load(self, params: Params, samples: Samples) -> None:
        """Copy other values and samples into these tensors, and put these tensors into `params`."""
        for name, value in self.params.items():
            params[name] = value.copy_(params[name])
        self.samples.take_over(samples)

    def run(self, number: int) -> Trained:
        """Train in round `number`."""
        for _ in self.pieces(number):
            pass
        return self.trained

    @property
    def trained(self) -> Trained:
        """Losses and opened values of the last round."""
        return self.losses, tuple(self.opened)

    def pieces(self, number: int) -> Iterator[None]:
        """Train in round `number`, yielding after each piece, so that several stacks can be interleaved."""
        self.opened = []
        for place in self.plan.numbers:
            phase = self.held.get(place)
            if phase is None:
                phase = _PhaseAtWork(self, place, number)
                if self.lasting:
                    self.held[place] = phase
            else:
                phase.restart(number)
            yield from phase.pieces()
            if phase.opened is not None:
                self.opened.append(phase.opened)
            if phase.phase.epochs:  # a closing, which is nothing but an opening, has no loss
                self.losses = phase.stop.mean_loss()


class _PhaseAtWork:
    """One phase of a fit."""

    def __init__(self, fit: Fit, place: int, number: int) -> None:
        # Not the fit itself, which holds this: memory would wait for Python's collector.
        self.plan, self.params, self.place, self.all_samples, self.all_runs = (
            fit.plan, fit.params, place, fit.samples, fit.runs
        )  # fmt: skip
        self.phase, self.by_round = fit.plan.phases[place], fit.client.training.by_round
        self.context = NotedContext.begun(number, place, self.by_round, fit.losses)
        self.opened: Opened | None = None
        if self.phase.opening is not None:
            rowless = (name for name in self.params if name not in self.plan.tables)
            self.opened = Opened(place, {name: torch.empty_like(self.params[name]) for name in rowless})
        self.samples, runs = _part(self.phase.part, fit, number)
        # Every epoch writes its order into the same tensors, so that its work can be replayed.
        own = {name: getattr(self.samples, name).clone() for name in ("rows", "labels", "partners")}
        self.shuffled, self.shuffles = replace(self.samples, **own), runs.batches[0] > 1
        self.turn = torch.zeros(1, dtype=torch.long, device=self.samples.rows.device)
        self.keys = self._keys(number).to(self.turn.device, non_blocking=True)
        loss = loss_of(fit.client, self.context, tuple(self.params), runs.each)
        steps = [self._step(index, step, loss, runs) for index, step in enumerate(self.phase.steps)]
        self.epoch = Epoch(steps, self.params, self.shuffled, runs, self.phase, self.plan.batch_size, self.context)
        self.stop = EarlyStop(self.phase.tolerance, self.epoch.moved, self.epoch.total_loss, self.samples.sizes)
        self.context.move_to(number, self.by_round)
        self.open = Repeated(self.plan.recorder, 1, fit.pool)
        self.once_more = Repeated(self.plan.recorder, self.phase.epochs, fit.pool)

    def _step(self, index: int, step: Step, loss: Loss, runs: Runs) -> StepAtWork:
        """A step on these tensors; compiled if the plan has a compiler."""
        compiler, names, numbers = self.plan.compiler, tuple(self.params), tuple(self.context.numbers)
        if compiler is not None and compiler.suits(self.place, partial(self._same_in_all_rounds, loss, runs)):
            function = compiler.function(self.place, index, step, names, numbers)
            if function.fast is not None:
                count = self.phase.epochs * runs.batches[0]
                return CompiledStep(function, step, self.params, self.plan.tables, runs, self.context, count)
        return PlainStep(step, loss, self.params, runs, self.context)

    def _same_in_all_rounds(self, loss: Loss, runs: Runs) -> bool:
        """Whether losses and shrinks leave the round alone, found out on a batch."""
        self.context.looked.clear()
        mask = self.samples.real_samples.to(self.samples.labels.dtype)
        batch = Window.of(self.samples, mask, runs.clients(len(runs.spans)), slice(0, 1)).batch
        loss(self.params, batch)
        for part in (part for step in self.phase.steps for part in step.parts if part.shrink is not None):
            shrunk(part.shrink, batch, self.context, runs)
        return not self.context.looked

    def _keys(self, number: int) -> Tensor:
        """[epochs] of the order of each, on the host; from pinned memory a GPU takes them without being waited for."""
        seed, epochs = self.plan.seed, range(self.phase.epochs if self.shuffles else 0)
        found = torch.tensor([derive(seed, "shuffle", number, self.place, count) for count in epochs], dtype=torch.long)
        return found.pin_memory() if self.turn.is_cuda else found

    def restart(self, number: int) -> None:
        """Begin another round on the same tensors."""
        if self.context.looked:
            self.open.forget()
            self.once_more.forget()
        self.context.move_to(number, self.by_round)
        self.turn.zero_()
        self.keys.copy_(self._keys(number), non_blocking=True)
        if not self.shuffles:
            for name in ("rows", "labels", "partners"):
                getattr(self.shuffled, name).copy_(getattr(self.samples, name))
        self.epoch.restart(number)
        self.stop.restart()

    def pieces(self) -> Iterator[None]:
        """The opening, and one epoch after the other."""
        if self.phase.opening is not None:
            self.open(self._open)
        for _ in range(self.phase.epochs):
            self.once_more(self._once)
            yield
            if not self.stop.goes_on:
                break

    def _open(self) -> None:
        opening, opened = self.phase.opening, self.opened
        if opening is None or opened is None:
            return
        for name, value in opened.values.items():
            value.copy_(self.params[name])
        for name, value in self.all_runs.each(partial(open_with, opening, self.context))(self.params).items():
            anywhere = self.phase.everywhere or name not in self.plan.tables
            sampled = None if anywhere else _sampled(self.all_samples, value)
            self.params[name].copy_(value if sampled is None else torch.where(sampled, value, self.params[name]))

    def _once(self) -> None:
        if self.shuffles:
            _shuffle(self.samples, self.keys.index_select(0, self.turn), self.shuffled)
            self.turn += 1
        self.stop.take(self.epoch.run)


def _part(part: str, fit: Fit, number: int) -> tuple[Samples, Runs]:
    """The samples of a phase and who works at which batch."""
    samples, runs, plan = fit.samples, fit.runs, fit.plan
    if part == "all":
        return samples, runs
    half = half_of(samples, part, plan.group, derive(plan.seed, "parts", number))
    batches = [math.ceil(size / plan.batch_size) for size in half.host_sizes]
    return half, Runs.alone(batches[0]) if runs.spans[0] is ... else Runs.of(batches)


def _shuffle(samples: Samples, key: Tensor, out: Samples) -> None:
    """Write the samples into `out` in a random order of each client's own; padding stays behind."""
    order = random_order(key, samples.identities, samples.rows.shape[-1], samples.sizes)
    torch.gather(samples.rows, -1, order, out=out.rows)
    torch.gather(samples.labels, -1, order, out=out.labels)
    if samples.partners.shape[-1]:
        torch.gather(samples.partners, -1, order, out=out.partners)


def _sampled(samples: Samples, like: Tensor) -> Tensor:
    """[..., R, 1, ...] True for rows that a sample is about, as wide as `like` [..., R, ...]."""
    here = samples.sampled_rows
    return here.reshape(here.shape + (1,) * (like.dim() - here.dim()))
