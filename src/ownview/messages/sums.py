"""Accumulators of uploads: they can be added to, merged, and sent on.

Several machines may each add up the uploads of some clients; merged, their partial sums are those of all clients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.memory.zeros import unwritten_zeros
from ownview.messages.nearby_sums import add_nearby
from ownview.messages.unwritten import parts_of
from ownview.messages.upload import MODULUS, Upload, add_cells, add_symmetric_cells, wide
from ownview.parts.pairs.positive_definite import symmetrised
from ownview.seam.client import Nearby, Patch, Product, Summand
from ownview.seam.server import RowWeights
from ownview.seam.training import Params

_BAND = 256
"""Rows of a symmetric sum that are multiplied at once: enough for a fast product, few beside 1,536 of them."""


_CELLS = 2**27
"""Cells of histories that wait to be added up together: some 100 MB of factors."""


class Rounding(Protocol):
    """How contributions to sums become whole numbers: `privacy.whole_steps`."""

    def parts(self, upload: Upload) -> Iterator[Upload]:
        """Uploads rounded to whole numbers, in float64; a few clients at a time, to bound memory."""


class Partial(ABC):
    """Accumulators of one round.

    `sums` are by name. Where clients send whole numbers modulo 2^32 those are added up in `words` [D], and `sums` are
    made of them when the round is over.

    Where `steps` says how contributions become whole numbers, those are what is added up, in float64, until the server
    has added noise and made numbers of them again.
    """

    sums: Params
    value_type: torch.dtype
    words: Tensor | None = None
    steps: Rounding | None = None

    def add(self, upload: Upload) -> None:
        """Add the uploads of B clients."""
        for part in (upload,) if self.steps is None else self.steps.parts(upload):
            self._add(part)

    @abstractmethod
    def _add(self, upload: Upload) -> None:
        """Add uploads, already rounded to whole steps where there are any."""

    @abstractmethod
    def pack(self) -> dict[str, Tensor]:
        """Sums by name, with their weights or counts, to be merged elsewhere."""

    def add_words(self, words: Tensor) -> None:
        """Add the whole numbers [B, D] of B clients, modulo 2^32."""
        if self.words is None:
            raise TypeError("whole numbers arrived where none were expected")
        self.words.add_(words.sum(0)).remainder_(MODULUS)

    def merge(self, packed: Mapping[str, Tensor]) -> None:
        """Add another partial sum, as it was packed."""
        for name, mine in self.pack().items():
            mine.add_(packed[name].to(mine.device))
        if self.words is not None:
            self.words.remainder_(MODULUS)

    def _packed_words(self) -> dict[str, Tensor]:
        return {} if self.words is None else {"words": self.words}


class MeanPartial(Partial):
    """Sums up w_u (x_u - x) over clients; x the value sent out, x_u the one sent back.

    The mean of full tables equals x + sum_u w_u (x_u - x) / sum_u w_u, and rows a client did not touch add zero,
    so touched rows are all that is needed.

    Of tables in `by_row` a row is divided by the weights of those clients alone whose samples of the round are about
    it, and what others send of it, noise or an own table's row of earlier rounds, does not count. The mean change of a
    row that no client touched is zero.

    Args:
        shared: what is averaged, as sent out.
        like: a tensor of the device and type to add up in.
        weighting: clients count by their "samples", or are "uniform".
        personal: names of tables that clients send whole, not as changes.
        by_row: names of tables averaged over the clients that touched a row.
        weigh: gives the rows of `tables` weights of their own, which take the place of the clients'.
        tables: names of what is averaged and has rows.
        divisor: what sums are divided by in place of the clients' weights; None for those.
        steps: how contributions become whole; None where they are added up as they arrive.
    """

    def __init__(
        self,
        shared: Params,
        like: Tensor,
        weighting: str,
        personal: frozenset[str] = frozenset(),
        by_row: frozenset[str] = frozenset(),
        weigh: RowWeights | None = None,
        tables: frozenset[str] = frozenset(),
        divisor: float | None = None,
        steps: Rounding | None = None,
    ) -> None:
        self.divisor, self.steps, self.value_type = divisor, steps, like.dtype
        self.shared, self.weighting, self.personal, self.by_row, self.weigh = shared, weighting, personal, by_row, weigh
        self.own_weights = tables if weigh is not None else frozenset()
        self.sums = {name: torch.zeros_like(value, dtype=_summed_in(steps, value)) for name, value in shared.items()}
        self.weight = like.new_zeros((), dtype=torch.float64)
        self.row_weights: Params = {
            name: like.new_zeros(len(shared[name]), dtype=value_type)
            for names, value_type in ((by_row, torch.float64), (self.own_weights, like.dtype))
            for name in names
        }

    def _add(self, upload: Upload) -> None:
        """Add the changes of B clients."""
        weights = upload.samples if self.weighting == "samples" else torch.ones_like(upload.samples)
        self.weight += weights.sum(dtype=torch.float64)
        if upload.words is not None:
            self.add_words(upload.words)
            return
        for name, total in self.sums.items():
            if name in self.own_weights and self.weigh is not None:
                self._add_by_own_weights(name, upload, self.weigh)
                continue
            if name in self.by_row:
                touched = upload.touched.to(torch.float64)
                add_rows(self.row_weights[name], upload.items, _weighted(touched, weights))
            if name in upload.rows:
                add_rows(total, upload.items, _weighted(upload.rows[name], weights))
            elif name in upload.whole:
                change = self._change(name, upload)
                counted = change * _touched(upload, change) if name in self.by_row else change
                total.add_(_weighted(counted, weights).sum(0))

    def _change(self, name: str, upload: Upload) -> Tensor:
        """[B, ...] the change of a value that is sent whole; of a personal table, the difference to the server's."""
        return upload.whole[name] - self.shared[name] if name in self.personal else upload.whole[name]

    def _add_by_own_weights(self, name: str, upload: Upload, weigh: RowWeights) -> None:
        by_row = name in upload.rows
        change = upload.rows[name] if by_row else self._change(name, upload)
        weights = weigh(change)
        for total, counted in ((self.sums[name], change * wide(weights, change)), (self.row_weights[name], weights)):
            if by_row:
                add_rows(total, upload.items, counted)
            else:
                total.add_(counted.sum(0))

    def mean(self) -> Params:
        """The mean change; zero without participants, unless sums are divided by a fixed number."""
        if self.divisor is not None:
            return {name: total / self.divisor for name, total in self.sums.items()}
        if not bool(self.weight):
            return self.sums
        return {name: total / self._divisor(name, total) for name, total in self.sums.items()}

    def _divisor(self, name: str, total: Tensor) -> Tensor:
        if name not in self.row_weights:
            return self.weight.to(total.dtype)
        weights = self.row_weights[name]
        # Sums of rows without weight are zero.
        return wide(torch.where(weights > 0, weights, 1.0).to(total.dtype), total)

    def pack(self) -> dict[str, Tensor]:
        """Sums and weights by name."""
        packed = {f"sum.{name}": value for name, value in self.sums.items()}
        packed |= {f"rows.{name}": value for name, value in self.row_weights.items()}
        return packed | self._packed_words() | {"weight": self.weight}


class SumPartial(Partial):
    """Adds up summands over clients; writes no more of a product or of a patch out than the sum.

    Args:
        declared: by name.
        like: a tensor of the device and type to add up in.
        steps: how contributions become whole; None where they are added up as they arrive.
    """

    def __init__(self, declared: Mapping[str, Summand], like: Tensor, steps: Rounding | None = None) -> None:
        self.declared, self.steps, self.value_type = declared, steps, like.dtype
        self.clients = torch.zeros((), dtype=torch.long, device=like.device)
        self._sums: Params = {
            name: unwritten_zeros(one.shape, _summed_in(steps, like), like.device) for name, one in declared.items()
        }
        self._waiting: dict[str, list[Nearby]] = {}
        self._lopsided: set[str] = set()
        """Symmetric sums of which more stands on one side of the diagonal: their two halves have to be averaged."""

    @property
    def sums(self) -> Params:  # type: ignore[override]
        """Sums by name, of all uploads added so far."""
        for name in list(self._waiting):
            add_nearby(self._sums[name], self._waiting.pop(name))
        while self._lopsided:
            total = self._sums[self._lopsided.pop()]
            symmetrised(total.view(len(total), -1))
        return self._sums

    def _wait(self, name: str, one: Nearby) -> None:
        """Buffer histories: added up in large batches, they take less time each."""
        waiting = self._waiting.setdefault(name, [])
        waiting.append(one)
        if sum(part.mask.shape[1] * part.mask.numel() for part in waiting) > max(_CELLS, self._sums[name].numel()):
            add_nearby(self._sums[name], self._waiting.pop(name))

    def _add(self, upload: Upload) -> None:
        """Add the summands of B clients."""
        self.clients += len(upload.clients)
        if upload.words is not None:
            self.add_words(upload.words)
        for name, one in parts_of(upload.sums).items():
            if isinstance(one, Nearby):
                self._wait(name, one)
            elif isinstance(one, Product):
                total = self._sums[name].view(one.left.shape[-1], one.right.shape[-1])
                add_product(total, one, symmetric=self.declared[name].symmetric)
            elif isinstance(one, Patch):
                self._add_patch(name, one)
            else:
                self._sums[name] += one.sum(0).reshape(self._sums[name].shape)

    def _add_patch(self, name: str, one: Patch) -> None:
        """Rounded to whole steps, each cell by itself, a symmetric patch need not be symmetric any more."""
        total = self._sums[name].view(len(self._sums[name]), -1)
        if self.steps is None and self.declared[name].symmetric and torch.equal(one.rows, one.columns):
            self._lopsided.add(name)
            add_symmetric_cells(total, one)
        else:
            add_cells(total, one)

    def pack(self) -> dict[str, Tensor]:
        """Sums by name, and the number of clients in them."""
        sums = {f"sum.{name}": value for name, value in self.sums.items()}
        return sums | self._packed_words() | {"clients": self.clients}


def _summed_in(steps: Rounding | None, like: Tensor) -> torch.dtype:
    """Whole numbers are added up in float64, which is exact up to 2^53."""
    return like.dtype if steps is None else torch.float64


def require_declared(upload: Upload, declared: Mapping[str, Summand]) -> None:
    """Refuse summands that were not declared, or came in another size."""
    if len(upload.clients) and set(upload.sums) != set(declared):
        raise SettingError(
            f"a client sends {sorted(upload.sums)}; declared as leaving the device is {sorted(declared)}"
        )
    for name, one in parts_of(upload.sums).items():
        shape = declared[name].shape
        if isinstance(one, Nearby):
            square = one.mask[:, :, None].expand(-1, -1, one.mask.shape[1])
            found = _outside(Patch(one.rows, one.rows, square), shape)
        else:
            found = _outside(one, shape) if isinstance(one, Patch) else _other_size(one, shape)
        if found:
            raise SettingError(f"summand {name!r} came with {found}; declared is the shape {shape}")


def _other_size(one: Tensor | Product, shape: tuple[int, ...]) -> str:
    size = one.left.shape[-1] * one.right.shape[-1] if isinstance(one, Product) else one.shape[1:].numel()
    return "" if size == prod(shape) else f"{size} numbers"


def _outside(one: Patch, shape: tuple[int, ...]) -> str:
    """What of a patch lies outside a matrix of this shape, in words; empty if nothing does."""
    height, width = shape[0], prod(shape[1:])
    across = width if one.of_rows else one.columns.shape[-1]
    if one.values.shape[1:] != (one.rows.shape[-1], across):
        found = " x ".join(map(str, one.values.shape[1:]))
        return f"{found} values in {one.rows.shape[-1]} rows and {across} columns"
    for what, places, size in (("row", one.rows, height), ("column", one.columns, width)):
        if places.numel() and not 0 <= int(places.min()) <= int(places.max()) < size:
            return f"{what} {int(places.max())}"
    return ""


def _touched(upload: Upload, like: Tensor) -> Tensor:
    """[B, m, 1, ...] 1 where a client's samples are about a row, else 0, as wide as `like` [B, m, ...]."""
    here = torch.zeros(like.shape[:2], dtype=like.dtype, device=like.device)
    here.scatter_add_(1, upload.items, upload.touched.to(like.dtype))
    return wide(here, like)


def _weighted(change: Tensor, weights: Tensor) -> Tensor:
    return change * wide(weights, change).to(change.dtype)


def add_product(total: Tensor, stacked: Product, *, symmetric: bool = False) -> None:
    """total [a, b] += sum over clients of left^T right; of symmetric sums what is below the diagonal is mirrored.

    A band of the rows is multiplied with what stands on and right of the diagonal: with many bands that is half the
    work. Every client's product must then be symmetric by itself, to rounding.

    Args:
        total: contiguous.
        stacked: left [B, k, a] and right [B, k, b].
        symmetric: whether one half is enough.
    """
    left, right = (side.reshape(-1, side.shape[-1]) for side in stacked)
    if not symmetric:
        total += left.T @ right
        return
    for start in range(0, len(total), _BAND):
        end = min(start + _BAND, len(total))
        upper = left[:, start:end].T @ right[:, start:]
        total[start:end, start:] += upper
        total[end:, start:end] += upper[:, end - start :].T


def add_rows(table: Tensor, items: Tensor, rows: Tensor) -> None:
    """table[items[b, r]] += rows[b, r], in an order that is the same on every run.

    Args:
        table: [m, ...].
        items: [B, R], each client's distinct but for padding, whose rows are zero.
        rows: [B, R, ...].
    """
    if table.device.type == "cpu":
        flat = items.reshape(-1, *[1] * (table.dim() - 1)).expand(items.numel(), *table.shape[1:])
        table.scatter_add_(0, flat, rows.reshape(flat.shape))
        return
    # Atomic additions of floats on a GPU come in any order. Scattered into one table per client (no collisions but
    # padding, which adds zero) and then summed, they always come in the same one.
    step = max(1, 2**28 // (table.numel() * table.element_size()))
    for start in range(0, len(items), step):
        index = items[start : start + step]
        spread = torch.zeros((len(index), *table.shape), dtype=table.dtype, device=table.device)
        across = index.reshape(*index.shape, *[1] * (table.dim() - 1)).expand(*index.shape, *table.shape[1:])
        table += spread.scatter_add_(1, across, rows[start : start + step]).sum(0)
