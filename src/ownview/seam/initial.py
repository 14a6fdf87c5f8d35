"""Initial values: every client and the server start from the same draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.base.memory.zeros import unwritten_zeros


@dataclass(frozen=True)
class Normal:
    """Gaussian with mean 0; std 1 is what embedding tables have in the released codes."""

    std: float

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Float32 values on the CPU."""
        return torch.randn(shape, generator=generator) * self.std


@dataclass(frozen=True)
class Uniform:
    """Uniform in [-bound, bound); bound 1/sqrt(d) is what linear layers of d inputs have."""

    bound: float

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Float32 values on the CPU."""
        return (torch.rand(shape, generator=generator) * 2 - 1) * self.bound


@dataclass(frozen=True)
class Constant:
    """The same value everywhere."""

    value: float = 0.0

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Float32 values on the CPU; the generator is not used."""
        if self.value == 0:
            return unwritten_zeros(shape, torch.float32, generator.device)
        return torch.full(shape, self.value)


@dataclass(frozen=True)
class Orthonormal:
    """Rows that are orthogonal and `length` long, in a random direction: r rows of d >= r values."""

    length: float

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Float32 values on the CPU."""
        rows, width = shape
        columns: Tensor = torch.linalg.qr(torch.randn((width, rows), generator=generator)).Q
        return columns.T.contiguous() * self.length


@dataclass(frozen=True, eq=False)
class Given:
    """Values that are known before training, such as features of items.

    Args:
        make: makes them, float32 on the CPU; called when they are needed, so that declaring a parameter costs nothing.
        missing: why there are none, half a sentence; empty where there are. A method that has such a parameter is
            refused before anything is made.
    """

    make: Callable[[], Tensor]
    missing: str = ""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The values, or their first rows where fewer are asked for; the generator is not used."""
        values = self.make()
        if values.shape[1:] != shape[1:] or len(values) < shape[0]:
            raise ValueError(f"given values have shape {tuple(values.shape)}; expected {shape}")
        return values[: shape[0]]


Initial = Normal | Uniform | Constant | Orthonormal | Given
