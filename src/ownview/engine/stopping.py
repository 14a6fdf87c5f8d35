"""Clients that leave their epochs early, in a stack that goes on for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


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
