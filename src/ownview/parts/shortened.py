"""What a client sends, made shorter: the largest rows alone, and numbers that take one byte.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017 (the largest); Alistarh et al.,
"QSGD", NeurIPS 2017 (rounding at random, so that the mean over many clients is what it was). Neither leaves anything at
the client: what is left of a gradient when the client's turn comes again, a whole pass later, is of a model long gone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.base.randomness import bits, derive, unit
from ownview.seam.client import Patch

_ROUNDED = derive(0, "shortened:rounded")
_STEPS = 127
"""Of a row's largest value at most: what one byte holds."""
_POWERS = 100
"""Steps are 2^-100 to 2^100."""


def largest_rows(table: Tensor, count: int) -> Patch:
    """The rows of a table [m, d] with the largest Euclidean norms, as a patch; all where there are not more.

    Rows that are 0 may be among them; a patch is sent without those.
    """
    kept = table.square().sum(-1).topk(min(count, len(table))).indices
    return Patch(kept, kept.new_zeros(0), table[kept])


def whole_table(table: Tensor) -> Patch:
    """All rows of a table [m, d], as a patch."""
    rows = torch.arange(len(table), device=table.device)
    return Patch(rows, rows.new_zeros(0), table)


def rounded(patch: Patch, chance: Tensor, draw: int) -> Patch:
    """Every row as whole numbers, -127 to 127, of a power of two that is the row's; each up or down at random.

    The expectation is the value. What is drawn depends on a value's row and column, not on what else is sent.

    Args:
        patch: of whole rows.
        chance: of the client in this round.
        draw: tells one table of the client from another.
    """
    values = patch.values
    largest = values.abs().amax(-1).clamp(min=2.0**-_POWERS, max=2.0**_POWERS)
    power = (torch.log2(largest / _STEPS).ceil() + _POWERS).long().clamp(0, 2 * _POWERS)
    step = torch.tensor([2.0**k for k in range(-_POWERS, _POWERS + 1)], dtype=values.dtype, device=values.device)
    step = step[power][:, None]
    column = torch.arange(values.shape[1], device=values.device)
    lots = bits(derive(_ROUNDED, "table", draw), chance, patch.rows[:, None] * values.shape[1] + column)
    counts = (values / step + unit(lots).to(values.dtype)).floor().clamp(-_STEPS, _STEPS)
    return patch._replace(values=counts * step)
