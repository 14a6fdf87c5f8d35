"""Optimisers of a client: elementwise, so that a stack of clients moves exactly as each would alone.

Clients are stacked along the leading axis in runs: slices of clients that take equally many steps. The runs are
sorted so that those still at work are always the first ones. Adam counts steps per run, because its bias
correction depends on them. One client alone has no leading axis, and its only run is `...`.

On a GPU a stack of clients counts steps per client: one kernel then does for all runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Protocol

import torch
from torch import Tensor

from ownview.seam import adam_kernel
from ownview.seam.fused_adam import fused_adam_

Run = slice | EllipsisType
"""Which clients of the leading axis."""


class Mover(Protocol):
    """An optimiser at work on some tensors."""

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move the clients of the first `active` runs in place; `grads` cover exactly those clients.

        `shrink` holds the weights of |x| (see `Step`), a row each, for the same clients; Sgd's movers heed it.
        """

    def restart(self, number: int) -> None:
        """Reset to the start of round `number` in place: recorded steps refer to these tensors."""


@dataclass(frozen=True)
class Sgd:
    """x <- x - rate * g.

    Args:
        learning_rate: the rate of the first step of the first round.
        step_decay: factor on the rate after every step of a round.
        round_decay: factor on the rate after every round.
    """

    learning_rate: float
    step_decay: float = 1.0
    round_decay: float = 1.0

    def start(self, params: Sequence[Tensor], runs: Sequence[Run], number: int) -> Mover:
        """Begin to move `params` in place in round `number`."""
        if self.step_decay == 1.0 and (self.round_decay == 1.0 or not _stacked_on_gpu(params, runs)):
            return _SgdMover(self, number, params, runs)
        kind = _DecayingByClient if _stacked_on_gpu(params, runs) else _DecayingSgdMover
        return kind(self, number, params, runs)

    def rate(self, number: int) -> float:
        """Learning rate of the first step of round `number`."""
        return self.learning_rate * self.round_decay ** (number - 1)

    @property
    def memories(self) -> int:
        """The optimiser's state: tensors of the shape of x, carried from step to step."""
        return 0

    def factors(self, count: int, number: int) -> list[list[float]]:
        """[1, count] the rate of every step of round `number`."""
        return [[self.rate(number) * self.step_decay**step for step in range(count)]]

    def moved(self, x: Tensor, grad: Tensor, memory: Sequence[Tensor], factors: Tensor) -> list[Tensor]:
        """New values [B, ...] as a pure function, for compilers. `factors` [1, B] are each client's own."""
        return [x - _wide(factors[0], x) * grad]


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015) with bias correction, without weight decay."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def start(self, params: Sequence[Tensor], runs: Sequence[Run], number: int) -> Mover:
        """Begin to move `params` in place, with zero moments in every round."""
        plain = all(param.is_contiguous() for param in params)  # the kernel walks through memory
        if plain and _stacked_on_gpu(params, runs) and adam_kernel.works(params[0].device, params[0].dtype):
            return _AdamByClient(self, params)
        return _AdamMover(self, params, runs)

    @property
    def memories(self) -> int:
        """Running means of gradients and of their squares."""
        return 2

    def factors(self, count: int, number: int) -> list[list[float]]:
        """[2, count] rate / (1 - beta1^t) and sqrt(1 - beta2^t) for steps t = 1, 2, ..."""
        steps = range(1, count + 1)
        sizes = [self.learning_rate / (1 - self.beta1**t) for t in steps]
        return [sizes, [math.sqrt(1 - self.beta2**t) for t in steps]]

    def moved(self, x: Tensor, grad: Tensor, memory: Sequence[Tensor], factors: Tensor) -> list[Tensor]:
        """New values and moments [B, ...] as a pure function, for compilers. `factors` are [2, B]."""
        first = self.beta1 * memory[0] + (1 - self.beta1) * grad
        second = self.beta2 * memory[1] + (1 - self.beta2) * grad.square()
        size, root = (_wide(factor, x) for factor in factors)
        return [x - size * first / (second.sqrt() / root + self.epsilon), first, second]


Optimizer = Sgd | Adam


def soft_threshold_(values: Tensor, threshold: Tensor) -> None:
    """Soft thresholding in place, the proximal operator of t |x|: x <- sign(x) max(|x| - t, 0).

    Args:
        values: [..., R, ...]
        threshold: its leading axes; every value of a row has the same. Where it is 0 values keep every bit.
    """
    values.copy_(soft_thresholded(values, threshold))


def soft_thresholded(values: Tensor, threshold: Tensor) -> Tensor:
    """The same as new values."""
    wide = threshold.reshape(threshold.shape + (1,) * (values.dim() - threshold.dim()))
    return values.sign() * (values.abs() - wide).clamp(min=0)


def _stacked_on_gpu(params: Sequence[Tensor], runs: Sequence[Run]) -> bool:
    """Whether to move all clients by one kernel: on a GPU a launch costs more than the arithmetic."""
    return params[0].is_cuda and runs[0] is not ...


class _SgdMover:
    """The rate is a plain number. Recorded steps keep it, so where they are recorded it is the same in all rounds."""

    def __init__(self, rule: Sgd, number: int, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rule, self.rate, self.params, self.runs = rule, rule.rate(number), params, runs

    def restart(self, number: int) -> None:
        """The rate of the round."""
        self.rate = self.rule.rate(number)

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place."""
        alone = self.runs[0] is ...
        for param, grad in zip(self.params, grads, strict=True):
            here = param if alone else param[: len(grad)]
            here.sub_(grad, alpha=self.rate)
            if shrink is not None:
                soft_threshold_(here, shrink * self.rate)


class _DecayingSgdMover:
    """Rates live in tensors, one a run, so that a replayed epoch goes on from where the last one ended."""

    def __init__(self, rule: Sgd, number: int, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rule, self.params, self.runs = rule, params, runs
        self.rates = [torch.empty((), dtype=params[0].dtype, device=params[0].device) for _ in runs]
        self.restart(number)

    def restart(self, number: int) -> None:
        """The rate of the round's first step."""
        for rate in self.rates:
            rate.fill_(self.rule.rate(number))

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place, each run at its own rate."""
        for run, rate in zip(self.runs[:active], self.rates[:active], strict=True):
            for param, grad in zip(self.params, grads, strict=True):
                param[run].sub_(grad[run] * rate)
                if shrink is not None:
                    soft_threshold_(param[run], shrink[run] * rate)
            rate.mul_(self.rule.step_decay)


class _DecayingByClient:
    """The same for a stack on a GPU: a rate for each client, and one kernel a parameter."""

    def __init__(self, rule: Sgd, number: int, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rule, self.params = rule, params
        self.rates = params[0].new_empty(len(params[0]))
        self.restart(number)

    def restart(self, number: int) -> None:
        """The rate of the round's first step, for everybody."""
        self.rates.fill_(self.rule.rate(number))

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place, each client at its own rate."""
        rates = self.rates[: len(grads[0])]
        for param, grad in zip(self.params, grads, strict=True):
            here = param[: len(grad)]
            here.addcmul_(grad, _wide(rates, grad), value=-1)
            if shrink is not None:
                soft_threshold_(here, shrink * _wide(rates, shrink))
        rates.mul_(self.rule.step_decay)


def _wide(numbers: Tensor, like: Tensor) -> Tensor:
    """[B, 1, ...] of [B], as many axes as `like` has."""
    return numbers.reshape(-1, *[1] * (like.dim() - 1))


class _AdamMover:
    def __init__(self, rule: Adam, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rule, self.runs = rule, runs
        firsts = [torch.zeros_like(p) for p in params]
        seconds = [torch.zeros_like(p) for p in params]
        self.params = [p[run] for run in runs for p in params]
        self.firsts = [m[run] for run in runs for m in firsts]
        self.seconds = [v[run] for run in runs for v in seconds]
        self.counters = [torch.zeros((), device=p.device) for _ in runs for p in params]
        self.per_run = len(params)

    def restart(self, number: int) -> None:
        """No moments, no steps."""
        for tensor in (*self.firsts, *self.seconds, *self.counters):
            tensor.zero_()

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place; one fused kernel covers all runs and parameters. `Step` lets no `shrink` come here."""
        n = active * self.per_run
        rule = self.rule
        fused_adam_(
            self.params[:n],
            [grad[run] for run in self.runs[:active] for grad in grads],
            (self.firsts[:n], self.seconds[:n]),
            self.counters[:n],
            rate=rule.learning_rate,
            beta1=rule.beta1,
            beta2=rule.beta2,
            epsilon=rule.epsilon,
        )


class _AdamByClient:
    """Adam of a stack on a GPU: a kernel a parameter for all clients, each with its own number of steps."""

    def __init__(self, rule: Adam, params: Sequence[Tensor]) -> None:
        self.params = params
        self.firsts = [torch.zeros_like(p) for p in params]
        self.seconds = [torch.zeros_like(p) for p in params]
        self.steps = params[0].new_zeros(len(params[0]), dtype=torch.float64)
        self.rule = adam_kernel.constants(rule.learning_rate, rule.beta1, rule.beta2, rule.epsilon, params[0].device)

    def restart(self, number: int) -> None:
        """No moments, no steps."""
        for tensor in (*self.firsts, *self.seconds, self.steps):
            tensor.zero_()

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place. `Step` lets no `shrink` come here."""
        self.steps[: len(grads[0])].add_(1)
        for at_work in zip(self.params, grads, self.firsts, self.seconds, strict=True):
            adam_kernel.move(*at_work, self.steps, self.rule)
