"""Rows whose values take one byte each: whole numbers from -127 to 127, times one power of two a row.

Nothing is rounded here: a client rounds its values to such multiples itself (`parts.shortened`), and they come back bit
for bit. Other values, such as noisy ones, are sent at full length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

LARGEST = 127
_BITS = 7
"""2^7 is the first whole number beyond the largest."""
LOWEST, HIGHEST = -120, 120
"""Powers that single precision holds with all their multiples."""

_POWERS = torch.tensor([2.0**k for k in range(-HIGHEST, -LOWEST + 1)], dtype=torch.float64)

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Coarse:
    """A table with few rows that are not 0, each of multiples of a power of two.

    Args:
        rows: [R] which, ascending.
        values: [R, w].
        num_rows: of the whole table.
    """

    rows: Tensor
    values: Tensor
    num_rows: int


def steps(values: Tensor) -> tuple[Tensor, Tensor]:
    """Exponent of every row, and whether all of its values are multiples of that power of two.

    Args:
        values: [..., R, w].

    Returns:
        [..., R] exponents as int16, for which the largest value is 64 to 127 steps; and [..., R].
    """
    largest = values.abs().amax(-1) if values.shape[-1] else values.new_zeros(values.shape[:-1])
    power = torch.frexp(largest).exponent.int() - _BITS
    known = torch.isfinite(largest) & (power >= LOWEST) & (power <= HIGHEST)
    power = torch.where(known & (largest > 0), power, 0)
    counts = _counts(values, power)
    fits = (counts == counts.round()).all(-1) & (counts.abs() <= LARGEST).all(-1)
    return power.to(torch.int16), fits & known


def _counts(values: Tensor, power: Tensor) -> Tensor:
    """Values in steps of their rows, exactly: a double holds them, and their powers of two."""
    factor: Tensor = _POWERS.to(values.device)[HIGHEST - power.long()]
    return values.double() * factor[..., None]


def packed(values: Tensor) -> bytes | None:
    """Exponents in two bytes each, then values [R, w] in one byte each; None if values are not such multiples."""
    power, fits = steps(values)
    if not bool(fits.all()):
        return None
    return power.numpy().astype("<i2").tobytes() + _counts(values, power).to(torch.int8).numpy().tobytes()


def unpacked(power: Array, counts: Array, kind: str) -> Array:
    """[R, w] values of type `kind`; `ValueError` for an exponent or a number that `packed` never writes."""
    if len(power) and not LOWEST <= int(power.min()) <= int(power.max()) <= HIGHEST:
        raise ValueError(f"a step of 2^{int(power.min())} to 2^{int(power.max())}; expected 2^{LOWEST} to 2^{HIGHEST}")
    if counts.size and int(counts.min()) < -LARGEST:
        raise ValueError(f"{int(counts.min())} steps; expected -{LARGEST} to {LARGEST}")
    return np.ldexp(counts.astype(np.float64), power.astype(np.int64)[:, None]).astype(kind)


def coarse_size(rows: Tensor, width: int) -> Tensor:
    """Bytes of tables of which so many rows are sent: a header of two axes, their number, which, powers, values."""
    return 12 + 4 + rows * (4 + 2 + width)
