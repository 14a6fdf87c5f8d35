"""What one person adds to sums, as whole numbers: blocks of rows and columns of matrices.

A number x is round(x 2^36) steps, the same on every call of one machine. Whole numbers are added and taken away without
rounding, in any order, so that what was added can be taken out again to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.counting import Cells
from ownview.data.interactions import IntArray
from ownview.messages.unwritten import by_distance, written
from ownview.seam.client import Nearby, Patch, Product, Sent

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


class Steps(NamedTuple):
    """Cells of a matrix as one row: places [c], distinct and ascending, and steps [c] int64."""

    places: IntArray
    steps: IntArray


Change = dict[str, Steps]
"""What is added to cells, or what they will have; by the name of the sum."""


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


def block_of(sent: Sent | Nearby) -> Block:
    """A summand in whole steps."""
    if isinstance(sent, Nearby):
        return _block_of_distances(sent) if sent.mask.eq(1).all() else block_of(written(sent))
    if isinstance(sent, Patch):
        columns = np.arange(sent.values.shape[1]) if sent.of_rows else sent.columns.numpy()
        return _ordered(sent.rows.numpy(), columns, sent.values)
    if isinstance(sent, Product):
        rows, columns = (np.flatnonzero(side.ne(0).any(0).numpy()) for side in sent)
        return _ordered(rows, columns, sent.left[:, rows].T @ sent.right[:, columns])
    values = sent.reshape(len(sent), -1)
    rows, columns = (np.flatnonzero(values.ne(0).any(axis).numpy()) for axis in (1, 0))
    return _ordered(rows, columns, values[torch.from_numpy(rows)][:, torch.from_numpy(columns)])


def _block_of_distances(sent: Nearby) -> Block:
    """Rounded by distance, k numbers in the place of k², then put where pairs are so far apart."""
    rows = sent.rows.numpy()
    order = np.argsort(rows, kind="stable")
    steps = np.rint(by_distance(sent).double().numpy() * 2.0**FRACTION).astype(np.int64)
    apart = order[:, None] - order
    return Block(rows[order], rows[order], steps.take(np.abs(apart, out=apart)))


def block_of_cells(cells: Cells, width: int) -> Block:
    """Counted cells of a matrix that is so wide, in whole steps."""
    rows, columns = np.unique(cells.places // width), np.unique(cells.places % width)
    values = np.zeros((len(rows), len(columns)))
    values[np.searchsorted(rows, cells.places // width), np.searchsorted(columns, cells.places % width)] = cells.values
    return _ordered(rows, columns, torch.from_numpy(values))


def _ordered(rows: IntArray, columns: IntArray, values: Tensor) -> Block:
    """Ordered first: the copy that this makes is rounded in its own place."""
    down, across = np.argsort(rows, kind="stable"), np.argsort(columns, kind="stable")
    steps = values.double().numpy().take(down, 0).take(across, 1)
    steps *= 2.0**FRACTION
    return Block(rows[down], columns[across], np.rint(steps, out=steps).astype(np.int64))


def change_of(after: Block | None, before: Block | None, width: int) -> Steps:
    """What makes one contribution of another, or of none, in a matrix that is so wide."""
    there = [one for one in (after, before) if one is not None]
    rows, columns = (np.unique(np.concatenate([one[k] for one in there])) for k in (0, 1))
    steps = np.zeros((len(rows), len(columns)), dtype=np.int64) if after is None else _among(after, rows, columns)
    if before is not None:
        then = _among(before, rows, columns)
        steps = np.subtract(steps, then, out=None if then is before.steps else then)
    steps = steps.reshape(-1)
    cells = np.flatnonzero(steps)
    down, across = np.divmod(cells, max(1, len(columns)))
    return Steps(rows[down] * width + columns[across], steps[cells])


def _among(block: Block, rows: IntArray, columns: IntArray) -> IntArray:
    """[k, l] the steps of a block where more rows and columns cross; 0 where it has none."""
    if block.steps.shape == (len(rows), len(columns)):
        return block.steps
    if not block.steps.size:
        return np.zeros((len(rows), len(columns)), dtype=np.int64)
    (down, absent), (across, lacking) = _places(block.rows, rows), _places(block.columns, columns)
    found = block.steps.take(down, 0).take(across, 1)  # rows, then columns: five times as fast as both at once
    found[absent] = 0
    found[:, lacking] = 0
    return found


def _places(some: IntArray, every: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of `every` in `some`, both ascending, and indices of those not in it, whose position is arbitrary."""
    found = np.searchsorted(some, every).clip(max=len(some) - 1)
    return found, np.flatnonzero(some[found] != every)


def together(parts: Sequence[Change]) -> Change:
    """The sum of several changes."""
    found = {}
    for name in sorted({name for one in parts for name in one}):
        each = [one[name] for one in parts if name in one]
        places, where = np.unique(np.concatenate([one.places for one in each]), return_inverse=True)
        steps = np.zeros(len(places), dtype=np.int64)
        np.add.at(steps, where, np.concatenate([one.steps for one in each]))
        found[name] = Steps(places, steps)
    return found


def size(change: Change) -> int:
    """Cells that it changes."""
    return sum(len(one.places) for one in change.values())


def checksums(steps: IntArray, columns: IntArray) -> IntArray:
    """[k] of the rows of steps [k, l], modulo 2^64: sum_j w(columns_j) steps_ij, w an odd number drawn for each column.

    A row with one other cell never has the same; one that differs at random has it once in 2^64. It takes a twentieth
    of the time of SHA-256. Who chooses cells can make them agree: it tells rounding apart, and no forger.
    """
    drawn = columns.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    drawn = (drawn ^ (drawn >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    drawn = (drawn ^ (drawn >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(steps @ (drawn ^ (drawn >> np.uint64(31)) | np.uint64(1)).view(np.int64))


def digest(blocks: Mapping[str, Block]) -> str:
    """SHA-256 of a contribution, cell by cell; places of items are part of it."""
    found = hashlib.sha256()
    for name in sorted(blocks):
        found.update(name.encode())
        for part in blocks[name]:
            found.update(np.ascontiguousarray(part, dtype=np.int64).data)
    return found.hexdigest()
