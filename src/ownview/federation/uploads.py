"""What leaves the clients, after everything that protects it: the server sees nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class Upload:
    """The changes of B clients against what they received.

    Args:
        samples: whose they are.
        rows: by name, changes [B, R, ...] of the rows `samples.items`; all other rows are unchanged.
        whole: by name, changes [B, ...] of parameters without rows, and [B, m, ...] of tables whose every row counts.
        weights: [B] of the clients in a mean.
    """

    samples: Samples
    rows: Params
    whole: Params
    weights: Tensor

    def norms(self) -> Tensor:
        """[B] Euclidean norm of everything a client sends; 0 where it sends nothing."""
        real = self.samples.real_rows
        parts = [_squares(change * _wide(real, change)) for change in self.rows.values()]
        parts += [_squares(change) for change in self.whole.values()]
        if not parts:
            return torch.zeros(len(self.weights), device=self.weights.device)
        return torch.stack(parts).sum(0).sqrt()

    def scaled(self, factors: Tensor) -> Upload:
        """Every client's changes times its factor [B]."""
        rows = {name: change * _wide(factors, change) for name, change in self.rows.items()}
        whole = {name: change * _wide(factors, change) for name, change in self.whole.items()}
        return replace(self, rows=rows, whole=whole)

    def spread(self, num_items: int) -> Upload:
        """With every table whole."""
        spread = {name: _spread(change, self.samples, num_items) for name, change in self.rows.items()}
        return replace(self, rows={}, whole={**self.whole, **spread})


def _spread(change: Tensor, samples: Samples, num_items: int) -> Tensor:
    index = _wide(samples.items, change).expand_as(change)
    whole = torch.zeros(len(change), num_items, *change.shape[2:], dtype=change.dtype, device=change.device)
    return whole.scatter_add_(1, index, change * _wide(samples.real_rows, change))


def _squares(change: Tensor) -> Tensor:
    return change.reshape(len(change), -1).square().sum(1)


def _wide(tensor: Tensor, like: Tensor) -> Tensor:
    return tensor.reshape(tensor.shape + (1,) * (like.dim() - tensor.dim()))
