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

    def step(self, grads: Sequence[Tensor], active: int) -> None:
        """Move the clients of the first `active` runs in place; `grads` cover exactly those clients."""


@dataclass(frozen=True)
class Sgd:
    """x <- x - learning_rate * g."""

    learning_rate: float

    def start(self, params: Sequence[Tensor], runs: Sequence[Run]) -> Mover:
        """Begin to move `params` in place."""
        return _SgdMover(self, params, runs)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015) with bias correction, without weight decay."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def start(self, params: Sequence[Tensor], runs: Sequence[Run]) -> Mover:
        """Begin to move `params` in place, with zero moments."""
        return _AdamMover(self, params, runs)


Optimizer = Sgd | Adam


class _SgdMover:
    def __init__(self, rule: Sgd, params: Sequence[Tensor], runs: Sequence[Run]) -> None:
        self.rule, self.params, self.runs = rule, params, runs

    def step(self, grads: Sequence[Tensor], active: int) -> None:
        """Move in place."""
        alone = self.runs[0] is ...
        for param, grad in zip(self.params, grads, strict=True):
            (param if alone else param[: len(grad)]).sub_(grad, alpha=self.rule.learning_rate)


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

    def step(self, grads: Sequence[Tensor], active: int) -> None:
        """Move in place; one fused kernel covers all runs and parameters."""
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
