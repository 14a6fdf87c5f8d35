"""One pass over all batches of a stack of clients, or of one client: losses, gradients, steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.seam.client import Client
from ownview.seam.optimizers import Mover, Run
from ownview.seam.training import Batch, Context, Opening, Params, Phase, Step

Loss = Callable[[Params, Batch], Tensor]
"""The loss of one client ([]) or of a stack of clients ([B]), in one phase."""

Each = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is written for one client -> the same for one client, or mapped over a stack of clients."""


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
class NotedContext(Context):
    """A context that notes whether anybody looked at the round: what was recorded holds for that round alone then."""

    looked: list[str] = field(default_factory=list)

    def __getattribute__(self, name: str) -> Any:
        """What is asked for; that the round was asked for is noted."""
        if name == "round":
            object.__getattribute__(self, "looked").append(name)
        return object.__getattribute__(self, name)

    def move_to(self, number: int) -> None:
        """Be of another round, at which nobody has looked."""
        self.looked.clear()
        object.__setattr__(self, "round", number)


def open_with(opening: Opening, context: Context, p: Params) -> Params:
    """What an opening makes of a client's values, these last."""
    return opening(p, context)


def loss_of(client: Client, context: Context, names: tuple[str, ...], each: Each) -> Loss:
    """Losses of one client or of a stack; tensors go through `vmap` one by one, because it unpacks trees slowly."""

    def one(*tensors: Tensor) -> Tensor:
        return client.loss(dict(zip(names, tensors, strict=False)), Batch(*tensors[len(names) :]), context)

    every = each(one)

    def loss(p: Params, batch: Batch) -> Tensor:
        losses: Tensor = every(*(p[name] for name in names), *batch)
        return losses

    return loss


class Epoch:
    """One pass over all batches, every step of the phase on each.

    Args:
        loss: of the clients.
        params: values with the client axis in front, or one client's without it.
        samples: likewise, in the order of the epoch.
        runs: which clients work at which batch.
        phase: its steps.
        batch_size: samples in a batch.
        context: of the phase.
    """

    def __init__(
        self, loss: Loss, params: Params, samples: Samples, runs: Runs, phase: Phase, batch_size: int, context: Context
    ) -> None:
        self.loss, self.params, self.samples, self.runs, self.phase = loss, params, samples, runs, phase
        self.batch_size, self.context = batch_size, context
        self.mask = samples.real_samples.to(samples.labels.dtype)
        self.total_loss = torch.zeros_like(samples.sizes, dtype=samples.labels.dtype)
        self.ones = torch.ones_like(self.total_loss)
        self.movers = [[self._mover(part) for part in step.parts] for step in phase.steps]

    def _mover(self, part: Step) -> Mover:
        return part.optimizer.start([self.params[name] for name in part.names], self.runs.spans, self.context.round)

    def restart(self, number: int) -> None:
        """Begin round `number`, with the values that are there now."""
        self.total_loss.zero_()
        for mover in (mover for movers in self.movers for mover in movers):
            mover.restart(number)

    @property
    def moved(self) -> list[Tensor]:
        """The parameters that any step moves, or that are worked out before an epoch."""
        names = dict.fromkeys(name for step in self.phase.steps for part in step.parts for name in part.names)
        if self.phase.before_epoch is not None:
            prepared = self.runs.each(partial(open_with, self.phase.before_epoch, self.context))(self.params)
            names |= dict.fromkeys(prepared)
        return [self.params[name] for name in names]

    def prepare(self) -> None:
        """What the phase has done before every epoch."""
        if self.phase.before_epoch is not None:
            prepared = self.runs.each(partial(open_with, self.phase.before_epoch, self.context))(self.params)
            for name, value in prepared.items():
                self.params[name].copy_(value)

    def run(self) -> None:
        """Move the parameters in place and add up the losses of all samples."""
        self.prepare()
        for k in range(self.runs.batches[0]):
            active = self.runs.at(k)
            here = self.runs.clients(active)
            batch = _batch(self.samples, self.mask, here, slice(k * self.batch_size, (k + 1) * self.batch_size))
            for step, movers in zip(self.phase.steps, self.movers, strict=True):
                values, grads = self._gradients(batch, step, here)
                for part, mover, grad in zip(step.parts, movers, grads, strict=True):
                    bounded = _clipped(grad, part.clip, alone=here is ...) if part.clip else grad
                    mover.step(bounded, active, self._shrink(part, batch))
            self.total_loss[here].add_(values * batch.mask.sum(-1))

    def _gradients(self, batch: Batch, step: Step, here: Run) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Losses of the clients at work and the gradients of the step's parameters, part by part.

        Clients share no parameter, so the gradient of the SUM of their losses is the stack of their gradients.
        """
        values = {name: value[here].detach() for name, value in self.params.items()}
        moving = [values[name].requires_grad_() for part in step.parts for name in part.names]
        losses = self.loss(values, batch)
        # A sum and its slope are two kernels more; but PyTorch loads a large library for slopes that are given to it.
        total, slopes = (losses, self.ones[here]) if losses.is_cuda else (losses.sum(), None)
        grads = iter(torch.autograd.grad(total, moving, slopes, materialize_grads=True))
        return losses.detach(), [tuple(islice(grads, len(part.names))) for part in step.parts]

    def _shrink(self, part: Step, batch: Batch) -> Tensor | None:
        """[R] or [B, R] weights of |x|; what a step says of one client holds for each of a stack."""
        shrink = part.shrink
        if shrink is None:
            return None
        weights: Tensor = self.runs.each(lambda *tensors: shrink(Batch(*tensors), self.context))(*batch)
        return weights


def _clipped(grads: tuple[Tensor, ...], bound: float, *, alone: bool) -> tuple[Tensor, ...]:
    """Gradients of one client, or of each of a stack, with a norm over all of them of at most `bound`."""
    flat = [grad.reshape(-1) if alone else grad.reshape(len(grad), -1) for grad in grads]
    norms = torch.stack([part.square().sum(-1) for part in flat]).sum(0).sqrt()
    factors = bound / norms.clamp(min=bound)  # 1 where the norm is within it
    return tuple(grad * factors.reshape(factors.shape + (1,) * (grad.dim() - factors.dim())) for grad in grads)


def _batch(samples: Samples, mask: Tensor, here: Run, window: slice) -> Batch:
    shuffled = (samples.rows, samples.labels, mask, samples.partners)
    rows, labels, mask, partners = (tensor[here][..., window] for tensor in shuffled)
    both = torch.zeros(2, *rows.shape[:-1], samples.items.shape[-1], dtype=labels.dtype, device=rows.device)
    positives, counts = both[0].scatter_add_(-1, rows, labels), both[1].scatter_add_(-1, rows, mask)
    return Batch(rows, labels, mask, positives, counts, partners)
