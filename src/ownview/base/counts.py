"""Counts over several tensors, for which a GPU is waited for once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

_TOGETHER = 2**22
"""Numbers that are counted together: what is made for counting is no longer than these."""


def counts(values: Mapping[str, Tensor], count: Callable[[Tensor], Tensor]) -> dict[str, int]:
    """By name, the sum of `count` over chunks [k] of a tensor's numbers; 0 for a tensor without any.

    Args:
        values: by name, on one device.
        count: of a chunk, [] a whole number, or True for 1.
    """
    chunks = [(name, part) for name, value in values.items() for part in torch.split(value.reshape(-1), _TOGETHER)]
    found = dict.fromkeys(values, 0)
    if chunks:
        for (name, _), number in zip(chunks, torch.stack([count(part) for _, part in chunks]).tolist(), strict=True):
            found[name] += number
    return found


def not_finite(values: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor with a number that is not finite; None where all are.

    A sum is finite only where all of its numbers are, and takes one look at them. That of huge numbers may not be, and
    then each is looked at.
    """
    suspects = counts(values, _sum_is_not)
    looked_at = {name: values[name] for name, number in suspects.items() if number}
    return next(
        (name for name, number in counts(looked_at, lambda part: (~torch.isfinite(part)).sum()).items() if number), None
    )


def _sum_is_not(part: Tensor) -> Tensor:
    total = part.sum()
    return total - total != 0
