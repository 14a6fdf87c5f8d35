"""Layout of an upload as one vector, so that all of it can be clipped, masked and added up at once.

Of a symmetric matrix one half is enough: its diagonal, and the values above it times sqrt 2. The vector then has the
norm of the whole matrix, and equal noise on all of its numbers is half the variance off the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from ownview.messages.upload import Upload
from ownview.seam.client import Client, Patch, Reporting, Sent
from ownview.seam.training import Params


@dataclass(frozen=True)
class Part:
    """One value's part of the vector.

    Args:
        name: of the values.
        shape: of them.
        summand: whether they are a summand, else a change.
        symmetric: whether they are a symmetric matrix.
    """

    name: str
    shape: tuple[int, ...]
    summand: bool = False
    symmetric: bool = False

    @property
    def size(self) -> int:
        """Numbers in the vector."""
        side = self.shape[0] if self.shape else 1
        return side * (side + 1) // 2 if self.symmetric else prod(self.shape)

    def flat(self, value: Tensor) -> Tensor:
        """[B, size] of values [B, ...]; of a symmetric matrix the mean of both halves."""
        if not self.symmetric:
            return value.reshape(len(value), self.size)
        rows, columns = self._above(value.device)
        value = value.reshape(len(value), *self.shape)
        return (value[:, rows, columns] + value[:, columns, rows]) / 2 * self._lengths(value.device)

    def of_cells(self, patch: Patch) -> Tensor:
        """[B, size] of patches of a symmetric matrix, which is never written out: most of it is 0.

        The same numbers as `flat` has where both halves of the matrix are equal: halves add up without rounding.
        """
        side = self.shape[0]
        rows, columns = patch.rows[:, :, None], patch.columns[:, None, :]
        low, high = torch.minimum(rows, columns), torch.maximum(rows, columns)
        places = low * side - low * (low - 1) // 2 + high - low
        lengths = torch.full(places.shape, math.sqrt(2) / 2, dtype=torch.float64, device=places.device)
        lengths[low == high] = 1.0
        flat = torch.zeros(len(rows), self.size, dtype=torch.float64, device=rows.device)
        return flat.scatter_add_(1, places.flatten(1), (patch.values.double() * lengths).flatten(1))

    def whole(self, flat: Tensor) -> Tensor:
        """[B, ...] of what `flat` returned."""
        if not self.symmetric:
            return flat.reshape(len(flat), *self.shape)
        rows, columns = self._above(flat.device)
        value = flat.new_zeros(len(flat), *self.shape)
        value[:, rows, columns] = flat / self._lengths(flat.device)
        value[:, columns, rows] = value[:, rows, columns]
        return value

    def _above(self, device: torch.device) -> Tensor:
        return _triangle(self.shape[0], device)

    def _lengths(self, device: torch.device) -> Tensor:
        """1 on the diagonal, sqrt 2 above it; in float64, because an upload must not be longer than its clip.

        The root is `math`'s: PyTorch's is off by a last place on processors with AVX-512.
        """
        rows, columns = self._above(device)
        lengths = torch.full((self.size,), math.sqrt(2), dtype=torch.float64, device=device)
        lengths[rows == columns] = 1.0
        return lengths


def _has_cells(one: Sent | None) -> bool:
    """Whether it is a patch of some rows and some columns."""
    return isinstance(one, Patch) and not one.of_rows


@lru_cache(maxsize=4)
def _triangle(side: int, device: torch.device) -> Tensor:
    """[2, size] rows and columns on and above the diagonal; cached, as all clients need the same."""
    return torch.triu_indices(side, side, device=device)


@dataclass(frozen=True)
class Layout:
    """The parts of the vector, one after the other."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, client: Client, averaged: frozenset[str], num_items: int) -> Layout:
        """Layout of a method's uploads: values that the server averages, or summands."""
        if isinstance(client.work, Reporting):
            return cls(tuple(Part(n, one.shape, True, one.symmetric) for n, one in client.work.sends.items()))
        return cls(tuple(Part(name, client.params[name].whole_shape(num_items)) for name in sorted(averaged)))

    @property
    def size(self) -> int:
        """How many numbers the vector has."""
        return sum(part.size for part in self.parts)

    def flat(self, upload: Upload) -> Tensor:
        """[B, size] float64 of uploads with every table whole; 0 for what a client does not send."""
        nothing = torch.zeros((), dtype=torch.float64, device=upload.clients.device)
        sparse = {part.name: part for part in self.parts if part.symmetric and _has_cells(upload.sums.get(part.name))}
        dense = {name: one for name, one in upload.sums.items() if name not in sparse}
        given: Mapping[str, Tensor] = {**upload.whole, **replace(upload, sums=dense).written_out()}

        def flat(part: Part) -> Tensor:
            one = upload.sums.get(part.name)
            if part.name in sparse and isinstance(one, Patch):
                return part.of_cells(one)
            if part.name in given:
                return part.flat(given[part.name].double())
            return nothing.expand(len(upload.clients), part.size)

        every = [flat(part) for part in self.parts]
        return every[0] if len(every) == 1 else torch.cat(every, dim=1)

    def named(self, flat: Tensor) -> Params:
        """Values by name [B, ...], from vectors that `flat` returned."""
        pieces = torch.split(flat, [part.size for part in self.parts], dim=1)
        return {part.name: part.whole(piece) for part, piece in zip(self.parts, pieces, strict=True)}

    def spread_out(self, upload: Upload, named: Params) -> Upload:
        """The upload with values by name in place of its words."""
        summands = {part.name for part in self.parts if part.summand}
        sums = {name: value for name, value in named.items() if name in summands}
        whole = {name: value for name, value in named.items() if name not in summands}
        return replace(upload, whole=whole, sums=sums, words=None)
