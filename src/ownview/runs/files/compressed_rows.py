"""Matrices that are mostly zeros, as files hold them: compressed rows, read back to the bit.

A sum of pairs of 18,000 items has one number in two hundred that is not 0: 20 MB instead of 1.3 GB.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

from ownview.base.display.amounts import readable
from ownview.engine.machine import free_memory

Shapes = dict[str, list[int]]
"""By name of a matrix that was compressed, its rows and columns."""

_LEAST = 1 << 20
"""Bytes below which a matrix is written as it is."""

_FEW = 4
"""One of so many numbers at most may be something else than 0."""

_ROWS = 1024
"""Rows that are looked at together."""

_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def compressed(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Shapes]:
    """The same with NAME.offsets [a + 1], NAME.columns [c] and NAME.values [c] for a NAME [a, b] of few numbers."""
    found: dict[str, Tensor] = {}
    shapes: Shapes = {}
    for name, value in tensors.items():
        few = value.ndim == 2 and value.is_floating_point() and value.nbytes >= _LEAST
        if few and _FEW * int(torch.count_nonzero(value)) <= value.numel():
            shapes[name] = list(value.shape)
            found |= {f"{name}.{part}": one for part, one in _rows(value.contiguous()).items()}
        else:
            found[name] = value
    return found, shapes


def whole(tensors: Mapping[str, Tensor], shapes: Shapes) -> dict[str, Tensor]:
    """What was compressed.

    Raises:
        ValueError: rows or columns that are none, or a matrix that does not fit into memory.
    """
    found = dict(tensors)
    for name, shape in shapes.items():
        offsets, columns, values = (found.pop(f"{name}.{part}") for part in ("offsets", "columns", "values"))
        height, width = shape
        if prod(shape) * values.itemsize > free_memory():
            raise ValueError(f"{name} takes {readable(prod(shape) * values.itemsize)}, more than there is")
        counts = offsets.diff()
        sound = len(offsets) == height + 1 and len(columns) == len(values) == int(offsets[-1]) and offsets[0] == 0
        if not sound or bool((counts < 0).any()) or bool(((columns < 0) | (columns >= width)).any()):
            raise ValueError(f"{name}: compressed rows that do not fit {height} x {width}")
        found[name] = torch.zeros(height, width, dtype=values.dtype)
        rows = torch.repeat_interleave(torch.arange(height), counts)
        found[name][rows, columns.long()] = values
    return found


def _rows(value: Tensor) -> dict[str, Tensor]:
    """Entries with any bit set: -0.0 counts."""
    bits = value.view(_BITS[value.itemsize])
    found = [torch.nonzero(part, as_tuple=True) for part in torch.split(bits, _ROWS)]
    rows = torch.cat([some + start * _ROWS for start, (some, _) in enumerate(found)])
    columns = torch.cat([some for _, some in found])
    counts = torch.bincount(rows, minlength=len(value))
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return {"offsets": offsets, "columns": columns.int(), "values": value[rows, columns]}
