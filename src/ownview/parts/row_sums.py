"""Weighted sums of a table's rows on a GPU, for a stack of clients in one pass over memory.

A compiler has too little of a GPU at work on sums over hundreds of rows of sixteen numbers, and the library for matrix
products takes more than twice as long as this. Here many programs take some rows each, and what they found is added
up in a fixed order, so that every run has the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # on systems without a GPU
    triton = None

_NUMBERS = 4096
"""Of a table, that one program takes."""


def weighted_row_sums(table: Tensor, weights: Tensor) -> Tensor:
    """[d] weights @ table, of a table [R, d] and weights [R]; for compiled steps on a GPU."""
    found: Tensor = _WeightedRowSums.apply(table, weights)  # type: ignore[no-untyped-call]
    return found


class _WeightedRowSums(torch.autograd.Function):
    """Sums by the kernel, with slopes of their own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(table: Tensor, weights: Tensor) -> Tensor:
        """[d] weights @ table."""
        found: Tensor = _partial_sums(table.unsqueeze(0), weights.unsqueeze(0)).squeeze(0).sum(0)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep both factors."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """[R, d] slopes of the table and [R] of the weights, of those [d] of the sums."""
        table, weights = ctx.saved_tensors
        return weights.unsqueeze(-1) * slopes, table @ slopes


def _rows_each(width: int) -> int:
    """Rows that one program takes, a power of two."""
    return max(1, _NUMBERS // _columns(width))


def _columns(width: int) -> int:
    """The next power of two, which is how Triton counts."""
    return 1 << (width - 1).bit_length()


@torch.library.custom_op("ownview::partial_row_sums", mutates_args=(), device_types="cuda")
def _partial_sums(table: Tensor, weights: Tensor) -> Tensor:
    """[B, P, d] weighted sums of some rows after the other, of tables [B, R, d] and weights [B, R]."""
    clients, rows, width = table.shape
    each = _rows_each(width)
    parts = -(-rows // each)
    sums = table.new_empty(clients, parts, width)
    if sums.numel():
        kernel: Any = _summed
        kernel[(clients * parts,)](
            table.contiguous(), weights.contiguous(), sums, rows, parts, width, each, _columns(width)
        )
    return sums


@_partial_sums.register_fake
def _like_partial_sums(table: Tensor, weights: Tensor) -> Tensor:
    clients, rows, width = table.shape
    each = _rows_each(width)
    return table.new_empty(clients, (rows + each - 1) // each, width)


@_partial_sums.register_vmap
def _stacked(info: Any, axes: tuple[int | None, int | None], table: Tensor, weights: Tensor) -> tuple[Tensor, int]:
    """Clients of a stack of stacks are clients."""
    tables, factors = (
        given.expand(info.batch_size, *given.shape) if axis is None else given.movedim(axis, 0)
        for given, axis in zip((table, weights), axes, strict=True)
    )
    found: Tensor = _partial_sums(tables.flatten(0, 1), factors.flatten(0, 1))
    return found.reshape(info.batch_size, -1, *found.shape[1:]), 0


if triton is not None:

    @triton.jit(do_not_specialize=["rows", "parts"])  # type: ignore[untyped-decorator]
    def _summed(  # type: ignore[no-untyped-def]  # noqa: ANN202 - Triton takes no other annotations than its own
        table, weights, sums, rows, parts,  # noqa: ANN001
        width: tl.constexpr, each: tl.constexpr, columns: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        client = (program // parts).to(tl.int64)
        row = (program % parts) * each + tl.arange(0, each)
        column = tl.arange(0, columns)
        at = (client * rows + row)[:, None] * width + column[None, :]
        here = (row < rows)[:, None] & (column < width)[None, :]
        value = tl.load(table + at, mask=here, other=0.0)
        weight = tl.load(weights + client * rows + row, mask=row < rows, other=0.0)
        total = tl.sum(value * weight[:, None], axis=0)
        tl.store(sums + program.to(tl.int64) * width + column, total, mask=column < width)
