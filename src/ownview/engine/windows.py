"""Samples that stand in one batch, of one client or of a stack of clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.seam.optimizers import Run
from ownview.seam.training import Batch


@dataclass(frozen=True, eq=False)
class Window:
    """Samples of a batch before rows are counted; a compiled step counts in its own pass over memory.

    Args:
        rows: [B, S] or [S] which row each sample is about.
        labels: likewise, 1 for a positive.
        mask: likewise, 1 for a sample, 0 for padding.
        partners: likewise, the row of the positive that a sample was drawn for; empty without `pairs`.
        items: [B, R] or [R] the item behind each row; how many rows there are is all that counts here.
    """

    rows: Tensor
    labels: Tensor
    mask: Tensor
    partners: Tensor
    items: Tensor

    @classmethod
    def of(cls, samples: Samples, mask: Tensor, here: Run, part: slice) -> Window:
        """Some samples of the clients at work; `mask` [B, S] or [S] is 1 for real ones."""
        shuffled = (samples.rows, samples.labels, mask, samples.partners)
        rows, labels, mask, partners = (tensor[here][..., part] for tensor in shuffled)
        return cls(rows, labels, mask, partners, samples.items[here])

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, in order."""
        return self.rows, self.labels, self.mask, self.partners, self.items

    @cached_property
    def batch(self) -> Batch:
        """The batch with counts, shared by all steps."""
        return counted(*self.tensors)


def counted(rows: Tensor, labels: Tensor, mask: Tensor, partners: Tensor, items: Tensor) -> Batch:
    """The samples of a window, and how often each row stands among them."""
    both = torch.zeros(2, *items.shape, dtype=labels.dtype, device=rows.device)
    positives, counts = both[0].scatter_add_(-1, rows, labels), both[1].scatter_add_(-1, rows, mask)
    return Batch(rows, labels, mask, positives, counts, partners)
