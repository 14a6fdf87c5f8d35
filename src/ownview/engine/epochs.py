"""One pass over all batches of a stack of clients, or of one client: losses, gradients, steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.engine.step_runs import Each, Runs
from ownview.engine.steps import Loss, StepAtWork
from ownview.engine.windows import Window
from ownview.seam.client import Client
from ownview.seam.training import Batch, ByRound, Context, Opening, Params, Phase


@dataclass(frozen=True)
class NotedContext(Context):
    """A context whose round advances. It notes whether its number was read: a recording then holds for it alone.

    Its numbers are tensors [] that are filled anew in every round, so that recorded work goes on with them.
    """

    numbers: Mapping[str, Tensor] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)

    @classmethod
    def begun(cls, number: int, phase: int, by_round: ByRound, like: Tensor) -> NotedContext:
        """The context of round `number`; its numbers have the dtype of `like`."""
        return cls(number, phase, {name: like.new_full((), value) for name, value in by_round(number).items()})

    def __getattribute__(self, name: str) -> Any:
        """The attribute; records that the round was read."""
        if name == "round":
            object.__getattribute__(self, "looked").append(name)
        return object.__getattribute__(self, name)

    def in_phase(self, phase: int) -> NotedContext:
        """The same in another phase, without marking the round as read."""
        return NotedContext(object.__getattribute__(self, "round"), phase, self.numbers, self.looked)

    def move_to(self, number: int, by_round: ByRound) -> None:
        """Reset to a round; mark its number unread."""
        self.looked.clear()
        object.__setattr__(self, "round", number)
        for name, value in by_round(number).items():
            self.numbers[name].fill_(value)


def open_with(opening: Opening, context: Context, p: Params) -> Params:
    """Values that an opening computes from a client's `p`; `p` is the last argument, for `partial`."""
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
        steps: of the phase, at work on these values.
        params: values with the client axis in front, or one client's without it.
        samples: likewise, in the order of the epoch.
        runs: which clients work at which batch.
        phase: its steps, and what is done before an epoch.
        batch_size: samples in a batch.
        context: of the phase.
    """

    def __init__(
        self, steps: Sequence[StepAtWork], params: Params, samples: Samples, runs: Runs, phase: Phase, batch_size: int,
        context: Context,
    ) -> None:  # fmt: skip
        self.steps, self.params, self.samples, self.runs, self.phase = steps, params, samples, runs, phase
        self.batch_size, self.context = batch_size, context
        self.mask = samples.real_samples.to(samples.labels.dtype)
        self.total_loss = torch.zeros_like(samples.sizes, dtype=samples.labels.dtype)

    def restart(self, number: int) -> None:
        """Begin round `number` on the current values."""
        self.total_loss.zero_()
        for step in self.steps:
            step.restart(number)

    @property
    def moved(self) -> list[Tensor]:
        """The parameters that any step moves, or that are worked out before an epoch."""
        names = dict.fromkeys(name for step in self.phase.steps for part in step.parts for name in part.names)
        if self.phase.before_epoch is not None:
            prepared = self.runs.each(partial(open_with, self.phase.before_epoch, self.context))(self.params)
            names |= dict.fromkeys(prepared)
        return [self.params[name] for name in names]

    def prepare(self) -> None:
        """Preparation of the phase before every epoch."""
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
            part = slice(k * self.batch_size, (k + 1) * self.batch_size)
            window = Window.of(self.samples, self.mask, here, part)
            for step in self.steps:
                losses = step.take(window, active)
            self.total_loss[here].add_(losses)
