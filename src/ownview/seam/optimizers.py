"""Optimisers of a client: elementwise, so that a stack of clients moves exactly as each would alone.

Clients are stacked along the leading axis in runs: slices of clients that take equally many steps. The runs are
sorted so that those still at work are always the first ones. Adam counts steps per run, because its bias
correction depends on them. One client alone has no leading axis, and its only run is `...`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam

Run = slice | EllipsisType
"""Which clients of the leading axis."""


class Mover(Protocol):
    """An optimiser at work on some tensors."""

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move the clients of the first `active` runs in place; `grads` cover exactly those clients.

        `shrink` holds the weights of |x| (see `Step`), a row each, for the same clients; Sgd's movers heed it.
        """


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
        rate = self.learning_rate * self.round_decay ** (number - 1)
        if self.step_decay == 1.0:
            return _SgdMover(rate, params, runs)
        return _DecayingSgdMover(rate, self.step_decay, params, runs)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015) with bias correction, without weight decay."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def start(self, params: Sequence[Tensor], runs: Sequence[Run], number: int) -> Mover:
        """Begin to move `params` in place, with zero moments, whatever the round."""
        return _AdamMover(self, params, runs)


Optimizer = Sgd | Adam


def soft_threshold_(values: Tensor, threshold: Tensor) -> None:
    """Soft thresholding in place, the proximal operator of t |x|: x <- sign(x) max(|x| - t, 0).

    Args:
        values: [..., R, ...]
        threshold: its leading axes; every value of a row has the same. Where it is 0 values keep every bit.
    """
    wide = threshold.reshape(threshold.shape + (1,) * (values.dim() - threshold.dim()))
    values.copy_(values.sign().mul_((values.abs() - wide).clamp_(min=0)))


class _SgdMover:
    def __init__(self, rate: float, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rate, self.params, self.runs = rate, params, runs

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

    def __init__(self, rate: float, decay: float, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.decay, self.params, self.runs = decay, params, runs
        self.rates = [torch.full((), rate, dtype=params[0].dtype, device=params[0].device) for _ in runs]

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place, each run at its own rate."""
        for run, rate in zip(self.runs[:active], self.rates[:active], strict=True):
            for param, grad in zip(self.params, grads, strict=True):
                param[run].sub_(grad[run] * rate)
                if shrink is not None:
                    soft_threshold_(param[run], shrink[run] * rate)
            rate.mul_(self.decay)


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

    def step(self, grads: Sequence[Tensor], active: int, shrink: Tensor | None = None) -> None:
        """Move in place; one fused kernel covers all runs and parameters. `Step` lets no `shrink` come here."""
        n = active * self.per_run
        adam(
            self.params[:n],
            # The fused kernel walks through memory, so gradients must be laid out as parameters are.
            [grad[run].contiguous() for run in self.runs[:active] for grad in grads],
            self.firsts[:n],
            self.seconds[:n],
            [],
            self.counters[:n],
            fused=True,
            amsgrad=False,
            beta1=self.rule.beta1,
            beta2=self.rule.beta2,
            lr=self.rule.learning_rate,
            weight_decay=0.0,
            eps=self.rule.epsilon,
            maximize=False,
        )
