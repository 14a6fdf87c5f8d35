"""What one person adds to sums, as whole numbers: blocks of rows and columns of matrices.

A number x is round(x 2^36) steps, the same on every call of one machine. Whole numbers are added and taken away without
rounding, in any order, so that what was added can be taken out again to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from ownview.baselines.parts.counting import Cells
from ownview.data.interactions import FloatArray, IntArray
from ownview.seam.client import Patch, Product, Sent

FRACTION = 36
"""Binary digits behind the point: steps of 1.5e-11, and room for sums up to 2^26."""

LARGEST = 2**62
"""No sum may go beyond it: one more contribution then still fits into 64 bits."""


class Block(NamedTuple):
    """A matrix that is 0 but where some rows and columns cross.

    rows:    [k] distinct, ascending
    columns: [l] likewise
    steps:   [k, l] int64
    """

    rows: IntArray
    columns: IntArray
    steps: IntArray


Blocks = dict[str, Block]
"""By the name of the sum."""


@dataclass(frozen=True)
class Axis:
    """Rows or columns of a sum: `per_item` numbers for every item, or a fixed number.

    Where there are several an item, those of all items for the first come before those for the second.
    """

    per_item: int
    fixed: int = 0

    def size(self, items: int) -> int:
        """For so many items."""
        return self.per_item * items + self.fixed

    def of(self, places: IntArray, items: int) -> IntArray:
        """What belongs to some items, by their places among so many."""
        if not self.per_item:
            return np.arange(self.fixed)
        return (np.arange(self.per_item)[:, None] * items + places).reshape(-1)


Axes = tuple[Axis, Axis]


def axes_of(small: tuple[int, ...], large: tuple[int, ...]) -> Axes:
    """Of a sum, from its shapes for m items and for m + 1; a sum of other than two axes is the first by all others."""
    sizes = [(shape[0], prod(shape[1:])) for shape in (small, large)]
    grown = [more - less for less, more in zip(*sizes, strict=True)]
    first, second = (Axis(each) if each else Axis(0, size) for each, size in zip(grown, sizes[0], strict=True))
    return first, second


def block_of(sent: Sent) -> Block:
    """A summand in whole steps."""
    if isinstance(sent, Patch):
        values = sent.values.numpy()
        columns = np.arange(values.shape[1]) if sent.of_rows else sent.columns.numpy()
        return _ordered(sent.rows.numpy(), columns, values)
    if isinstance(sent, Product):
        rows, columns = (np.flatnonzero(side.ne(0).any(0).numpy()) for side in sent)
        return _ordered(rows, columns, (sent.left[:, rows].T @ sent.right[:, columns]).numpy())
    values = sent.reshape(len(sent), -1).numpy()
    rows, columns = (np.flatnonzero((values != 0).any(axis)) for axis in (1, 0))
    return _ordered(rows, columns, values[np.ix_(rows, columns)])


def block_of_cells(cells: Cells, width: int) -> Block:
    """Counted cells of a matrix that is so wide, in whole steps."""
    rows, columns = np.unique(cells.places // width), np.unique(cells.places % width)
    values = np.zeros((len(rows), len(columns)))
    values[np.searchsorted(rows, cells.places // width), np.searchsorted(columns, cells.places % width)] = cells.values
    return _ordered(rows, columns, values)


def _ordered(rows: IntArray, columns: IntArray, values: FloatArray) -> Block:
    steps = np.rint(values.astype(np.float64) * 2.0**FRACTION).astype(np.int64)
    down, across = np.argsort(rows, kind="stable"), np.argsort(columns, kind="stable")
    return Block(rows[down], columns[across], steps[np.ix_(down, across)])


def joined(parts: Sequence[Blocks]) -> Blocks:
    """The sum of several contributions."""
    names = {name for one in parts for name in one}
    return {name: reduce(_plus, (one[name] for one in parts if name in one)) for name in sorted(names)}


def _plus(one: Block, other: Block) -> Block:
    rows, columns = np.union1d(one.rows, other.rows), np.union1d(one.columns, other.columns)
    steps = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for block in (one, other):
        steps[np.ix_(np.searchsorted(rows, block.rows), np.searchsorted(columns, block.columns))] += block.steps
    return Block(rows, columns, steps)


def negative(blocks: Blocks) -> Blocks:
    """What takes a contribution out again."""
    return {name: block._replace(steps=-block.steps) for name, block in blocks.items()}


def size(blocks: Mapping[str, Block]) -> int:
    """Cells of a contribution."""
    return sum(block.steps.size for block in blocks.values())


def digest(blocks: Mapping[str, Block]) -> str:
    """SHA-256 of a contribution; places of items are part of it."""
    found = hashlib.sha256()
    for name in sorted(blocks):
        found.update(name.encode())
        for part in blocks[name]:
            found.update(np.ascontiguousarray(part, dtype=np.int64).tobytes())
    return found.hexdigest()
