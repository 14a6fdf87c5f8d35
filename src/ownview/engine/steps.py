"""One step on a batch: losses, gradients, and the optimisers' moves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Protocol

import torch
from torch import Tensor

from ownview.engine.step_runs import Runs
from ownview.engine.windows import Window
from ownview.seam.optimizers import Run
from ownview.seam.training import Batch, Context, Params, Shrink, Step

Loss = Callable[[Params, Batch], Tensor]
"""The loss of one client ([]) or of a stack of clients ([B]), in one phase."""


class StepAtWork(Protocol):
    """A step of a phase, with its optimisers, on the tensors of one stack or client."""

    def take(self, window: Window, active: int) -> Tensor:
        """Move the clients of the first `active` runs in place; [B] or [] their losses before that, of all samples."""

    def restart(self, number: int) -> None:
        """Reset to the start of round `number` in place: recorded steps refer to these tensors."""


class PlainStep:
    """Operation by operation, as the loss is written: the reference.

    Args:
        step: what moves, and how.
        loss: of the clients.
        params: values with the client axis in front, or one client's without it.
        runs: which clients work at which batch.
        context: of the phase.
    """

    def __init__(self, step: Step, loss: Loss, params: Params, runs: Runs, context: Context) -> None:
        self.step, self.loss, self.params, self.runs, self.context = step, loss, params, runs, context
        self.movers = [
            part.optimizer.start([params[name] for name in part.names], runs.spans, context.round)
            for part in step.parts
        ]
        like = params[step.names[0]]
        self.ones = like.new_ones(()) if runs.spans[0] is ... else like.new_ones(len(like))

    def restart(self, number: int) -> None:
        """Optimisers begin anew."""
        for mover in self.movers:
            mover.restart(number)

    def take(self, window: Window, active: int) -> Tensor:
        """Move in place."""
        here, batch = self.runs.clients(active), window.batch
        losses, grads = self._gradients(batch, here)
        for part, mover, grad in zip(self.step.parts, self.movers, grads, strict=True):
            bounded = clipped(grad, part.clip, alone=here is ...) if part.clip else grad
            mover.step(bounded, active, shrunk(part.shrink, batch, self.context, self.runs))
        return losses * batch.mask.sum(-1)

    def _gradients(self, batch: Batch, here: Run) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Losses of the clients at work and the gradients of the step's parameters, part by part.

        Clients share no parameter, so the gradient of the SUM of their losses is the stack of their gradients.
        """
        values = {name: value[here].detach() for name, value in self.params.items()}
        moving = [values[name].requires_grad_() for part in self.step.parts for name in part.names]
        losses = self.loss(values, batch)
        # A sum and its slope are two kernels more; but PyTorch loads a large library for slopes that are given to it.
        total, slopes = (losses, self.ones[here]) if losses.is_cuda else (losses.sum(), None)
        grads = iter(torch.autograd.grad(total, moving, slopes, materialize_grads=True))
        return losses.detach(), [tuple(islice(grads, len(part.names))) for part in self.step.parts]


def shrunk(shrink: Shrink | None, batch: Batch, context: Context, runs: Runs) -> Tensor | None:
    """[R] or [B, R] weights of |x|; a step's function for one client is mapped over the stack."""
    if shrink is None:
        return None
    weights: Tensor = runs.each(lambda *tensors: shrink(Batch(*tensors), context))(*batch)
    return weights


def clipped(grads: tuple[Tensor, ...], bound: float, *, alone: bool) -> tuple[Tensor, ...]:
    """Gradients of one client, or of each of a stack, with a norm over all of them of at most `bound`."""
    flat = [grad.reshape(-1) if alone else grad.reshape(len(grad), -1) for grad in grads]
    norms = torch.stack([part.square().sum(-1) for part in flat]).sum(0).sqrt()
    factors = bound / norms.clamp(min=bound)  # 1 where the norm is within it
    return tuple(grad * factors.reshape(factors.shape + (1,) * (grad.dim() - factors.dim())) for grad in grads)
