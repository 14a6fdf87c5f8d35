"""The only client training loop. One client alone and a stack of clients run through the same lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ownview.base.randomness import derive
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples, half_of, random_order
from ownview.seam.client import Client
from ownview.seam.optimizers import Run
from ownview.seam.training import Batch, Context, Opening, Params, Phase, Step


class EarlyStop:
    """Runs epochs; a client stops after the first one that changes its running mean loss too little.

    The running mean is over all epochs so far, m_e = (sum of the losses of all samples of epochs 1 to e) / (e S).
    A client stops after epoch e > 1 where |m_e - m_(e-1)| < tolerance |m_(e-1)|, and keeps the values of that epoch:
    whatever later epochs of its stack do to it is undone. Its optimiser goes on, and is not read again.

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

    def run(self, epoch: Callable[[], None]) -> bool:
        """Run one more epoch; False once nobody is left, where finding out does not make the host wait for a GPU."""
        if self.tolerance == 0:
            epoch()
            self.epochs += 1
            return True
        held = [(value, value.clone()) for value in (*self.values, self.total_loss)]
        epoch()
        for value, before in held:
            working = self.working.reshape(self.working.shape + (1,) * (value.dim() - self.working.dim()))
            value.copy_(torch.where(working, value, before))
        self.epochs += self.working
        mean = self.mean_loss()
        self.working &= (mean - self.last).abs() >= self.tolerance * self.last.abs()
        self.last = mean
        return mean.device.type != "cpu" or bool(self.working.any())

    def mean_loss(self) -> Tensor:
        """[B] or [] mean over the samples of the epochs a client took part in; 0 for a client without samples."""
        return self.total_loss / (self.sizes * self.epochs).clamp(min=1)


Loss = Callable[[Params, Batch], Tensor]
"""The loss of one client ([]) or of a stack of clients ([B]), in one phase."""

Each = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is written for one client -> the same for one client, or mapped over a stack of clients."""


@dataclass(frozen=True, eq=False)
class Opened:
    """That a phase was opened: with which values, so that rows which are not at hand can follow.

    Args:
        phase: its number.
        values: of parameters without rows, as they were then.
    """

    phase: int
    values: Params


@dataclass(frozen=True)
class Runs:
    """Clients of a stack that take equally many batches an epoch stand together, the busiest first.

    A client must never take a step on an empty batch: Adam's momentum would move it. So at batch k only the leading
    runs that still have a k-th batch are at work.

    Args:
        spans: the clients of each run; a single `...` for one client without a client axis.
        batches: of each run, falling.
    """

    spans: tuple[Run, ...]
    batches: tuple[int, ...]

    @classmethod
    def of(cls, batches: Sequence[int]) -> Runs:
        """From the number of batches of each client of a stack, which must not rise."""
        starts = [k for k in range(len(batches)) if k == 0 or batches[k] != batches[k - 1]]
        if any(batches[k] > batches[k - 1] for k in starts[1:]):
            raise ValueError("clients of a stack must come with the busiest first")
        stops = [*starts[1:], len(batches)]
        spans = tuple(slice(start, stop) for start, stop in zip(starts, stops, strict=True))
        return cls(spans, tuple(batches[k] for k in starts))

    @classmethod
    def alone(cls, batches: int) -> Runs:
        """One client without a client axis."""
        return cls((...,), (batches,))

    @property
    def each(self) -> Each:
        """Maps what is written for one client over the stack; one client alone needs no mapping."""
        return (lambda function: function) if self.spans[0] is ... else torch.vmap

    def at(self, batch: int) -> int:
        """How many runs have a batch of this number."""
        return sum(count > batch for count in self.batches)

    def clients(self, active: int) -> Run:
        """The clients of the first `active` runs."""
        last = self.spans[active - 1]
        return slice(0, last.stop) if isinstance(last, slice) else last


@dataclass(frozen=True)
class Plan:
    """What local training does in a round.

    Args:
        phases: of the client, and what it does before it predicts.
        numbers: of the phases that run.
        batch_size: samples in a batch; the last batch of an epoch may be smaller.
        group: samples that belong together, a positive and its negatives.
        seed: of the run; with the round, phase, epoch and client it gives the order of samples.
        round: its number.
        recorder: repeats epochs.
        tables: names of parameters with rows.
    """

    phases: tuple[Phase, ...]
    numbers: range
    batch_size: int
    group: int
    seed: int
    round: int
    recorder: Recorder
    tables: frozenset[str]


def fit(client: Client, params: Params, samples: Samples, runs: Runs, plan: Plan) -> tuple[Tensor, tuple[Opened, ...]]:
    """Train `params` in place.

    Args:
        client: the method's.
        params: values with the client axis in front, or one client's without it.
        samples: likewise.
        runs: which clients work at which batch.
        plan: what is done.

    Returns:
        [B] or []: mean loss of each client over the epochs it took part in of the last phase; and the openings there
            were.
    """
    losses = torch.zeros_like(samples.sizes, dtype=samples.labels.dtype)
    opened: list[Opened] = []
    for number in plan.numbers:
        phase, context = plan.phases[number], Context(plan.round, number)
        if phase.opening is not None:
            rowless = {name: value.clone() for name, value in params.items() if name not in plan.tables}
            opened.append(Opened(number, rowless))
            for name, value in runs.each(partial(open_with, phase.opening, context))(params).items():
                anywhere = phase.everywhere or name not in plan.tables
                params[name].copy_(value if anywhere else torch.where(_sampled(samples, value), value, params[name]))
        here, at_work = _part(phase.part, samples, runs, plan)
        # Every epoch writes its order into the same tensors, so that its work can be replayed.
        shuffled = replace(here, rows=here.rows.clone(), labels=here.labels.clone(), partners=here.partners.clone())
        loss = _loss_of(client, context, tuple(params), runs.each)
        epoch = _Epoch(loss, params, shuffled, at_work, phase, plan, context)
        once_more = _prepared(phase, plan.recorder.repeated(epoch.run, phase.epochs), params, context, runs.each)
        stop = EarlyStop(phase.tolerance, epoch.moved, epoch.total_loss, here.sizes)
        for count in range(phase.epochs):
            if at_work.batches[0] > 1:
                _shuffle(here, derive(plan.seed, "shuffle", plan.round, number, count), shuffled)
            if not stop.run(once_more):
                break
        losses = stop.mean_loss()
    return losses, tuple(opened)


def _prepared(phase: Phase, epoch: Callable[[], None], params: Params, context: Context, each: Each) -> (
    Callable[[], None]
):  # fmt: skip
    """The work of an epoch, with what the phase does before it."""
    if phase.before_epoch is None:
        return epoch
    prepare = each(partial(open_with, phase.before_epoch, context))

    def work() -> None:
        for name, value in prepare(params).items():
            params[name].copy_(value)
        epoch()

    return work


def _part(part: str, samples: Samples, runs: Runs, plan: Plan) -> tuple[Samples, Runs]:
    """The samples of a phase and who works at which batch."""
    if part == "all":
        return samples, runs
    half = half_of(samples, part, plan.group, derive(plan.seed, "parts", plan.round))
    batches = [math.ceil(size / plan.batch_size) for size in half.host_sizes]
    return half, Runs.alone(batches[0]) if runs.spans[0] is ... else Runs.of(batches)


def open_with(opening: Opening, context: Context, p: Params) -> Params:
    """What an opening makes of a client's values, these last."""
    return opening(p, context)


def _loss_of(client: Client, context: Context, names: tuple[str, ...], each: Each) -> Loss:
    """Losses of one client or of a stack; tensors go through `vmap` one by one, because it unpacks trees slowly."""

    def one(*tensors: Tensor) -> Tensor:
        return client.loss(dict(zip(names, tensors, strict=False)), Batch(*tensors[len(names) :]), context)

    every = each(one)

    def loss(p: Params, batch: Batch) -> Tensor:
        losses: Tensor = every(*(p[name] for name in names), *batch)
        return losses

    return loss


class _Epoch:
    """One pass over all batches, every step of the phase on each."""

    def __init__(
        self, loss: Loss, params: Params, samples: Samples, runs: Runs, phase: Phase, plan: Plan, context: Context
    ) -> None:
        self.loss, self.params, self.samples, self.runs, self.phase = loss, params, samples, runs, phase
        self.batch_size, self.context = plan.batch_size, context
        self.mask = samples.real_samples.to(samples.labels.dtype)
        self.total_loss = torch.zeros_like(samples.sizes, dtype=samples.labels.dtype)
        self.movers = [
            [part.optimizer.start([params[name] for name in part.names], runs.spans, plan.round) for part in step.parts]
            for step in phase.steps
        ]

    @property
    def moved(self) -> list[Tensor]:
        """The parameters that any step moves, or that are worked out before an epoch."""
        names = dict.fromkeys(name for step in self.phase.steps for part in step.parts for name in part.names)
        if self.phase.before_epoch is not None:
            prepared = self.runs.each(partial(open_with, self.phase.before_epoch, self.context))(self.params)
            names |= dict.fromkeys(prepared)
        return [self.params[name] for name in names]

    def run(self) -> None:
        """Move the parameters in place and add up the losses of all samples."""
        for k in range(self.runs.batches[0]):
            active = self.runs.at(k)
            here = self.runs.clients(active)
            batch = _batch(self.samples, self.mask, here, slice(k * self.batch_size, (k + 1) * self.batch_size))
            for step, movers in zip(self.phase.steps, self.movers, strict=True):
                values, grads = _gradients(self.loss, self.params, batch, step, here)
                for part, mover, grad in zip(step.parts, movers, grads, strict=True):
                    bounded = _clipped(grad, part.clip, alone=here is ...) if part.clip else grad
                    mover.step(bounded, active, self._shrink(part, batch))
            self.total_loss[here] += values * batch.mask.sum(-1)

    def _shrink(self, part: Step, batch: Batch) -> Tensor | None:
        """[R] or [B, R] weights of |x|; what a step says of one client holds for each of a stack."""
        shrink = part.shrink
        if shrink is None:
            return None
        weights: Tensor = self.runs.each(lambda *tensors: shrink(Batch(*tensors), self.context))(*batch)
        return weights


def _gradients(
    loss: Loss, params: Params, batch: Batch, step: Step, here: Run
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """Losses of the clients at work and the gradients of the step's parameters, part by part.

    Clients share no parameter, so the gradient of the SUM of their losses is the stack of their gradients.
    """
    values = {name: value[here].detach() for name, value in params.items()}
    moving = [values[name].requires_grad_() for part in step.parts for name in part.names]
    losses = loss(values, batch)
    grads = iter(torch.autograd.grad(losses.sum(), moving, materialize_grads=True))
    return losses.detach(), [tuple(islice(grads, len(part.names))) for part in step.parts]


def _clipped(grads: tuple[Tensor, ...], bound: float, *, alone: bool) -> tuple[Tensor, ...]:
    """Gradients of one client, or of each of a stack, with a norm over all of them of at most `bound`."""
    flat = [grad.reshape(-1) if alone else grad.reshape(len(grad), -1) for grad in grads]
    norms = torch.stack([part.square().sum(-1) for part in flat]).sum(0).sqrt()
    factors = bound / norms.clamp(min=bound)  # 1 where the norm is within it
    return tuple(grad * factors.reshape(factors.shape + (1,) * (grad.dim() - factors.dim())) for grad in grads)


def _shuffle(samples: Samples, key: int, out: Samples) -> None:
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


def _batch(samples: Samples, mask: Tensor, here: Run, window: slice) -> Batch:
    shuffled = (samples.rows, samples.labels, mask, samples.partners)
    rows, labels, mask, partners = (tensor[here][..., window] for tensor in shuffled)
    empty = torch.zeros(*rows.shape[:-1], samples.items.shape[-1], dtype=labels.dtype, device=rows.device)
    positives, counts = empty.scatter_add(-1, rows, labels), empty.scatter_add_(-1, rows, mask)
    return Batch(rows, labels, mask, positives, counts, partners)
