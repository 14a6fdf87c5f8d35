"""Zeros that take no memory until they are written to."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor


def unwritten_zeros(shape: tuple[int, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    """Zeros of a shape.

    On the CPU the system hands pages out as they are written, and PyTorch's own zeros are written at once. A value that
    is items by items, and replaced before it is written to, costs nothing so.
    """
    if device.type != "cpu":
        return torch.zeros(shape, dtype=kind, device=device)
    return torch.from_numpy(np.zeros(prod(shape) * kind.itemsize, np.uint8)).view(kind).reshape(shape)
