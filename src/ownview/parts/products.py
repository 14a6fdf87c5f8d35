"""A table's rows times a vector, and some of its rows, as it is fastest in training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding

from ownview.parts.row_sums import weighted_row_sums


def row_products(table: Tensor, vector: Tensor) -> Tensor:
    """[R] the product of every row of a table [R, d] with a vector [d].

    For a stack of clients a CPU makes one small matrix product a client of `table @ vector`, and two more for its
    slopes; multiplied out, all clients are done in one sweep, which a compiler makes one with what comes before and
    after it. Where one table serves everybody, as in predictions, `table @ vector` is a single large product and far
    better. On a GPU a compiler sweeps likewise, but for the vector's slopes; where nothing is compiled, the library's
    product is the faster one.
    """
    if table.device.type == "cpu":
        return (table * vector).sum(-1)
    if not _traced():
        return table @ vector
    products: Tensor = _InOneSweep.apply(table, vector)  # type: ignore[no-untyped-call]
    return products


def rows_at(table: Tensor, rows: Tensor) -> Tensor:
    """[S, d] some rows [S] of a table [R, d].

    For a stack of clients `embedding` is the faster way; but it fixes the number of clients, so that what is compiled
    would have to be compiled again for every other.
    """
    return table[rows] if _traced() else embedding(rows, table)


def _traced() -> bool:
    """Whether a compiler looks on; in PyTorch 2.11 `is_compiling` does not say so of all of its stages."""
    return torch.compiler.is_compiling() or torch._guards.TracingContext.try_get() is not None


class _InOneSweep(torch.autograd.Function):
    """Products of rows and a vector, multiplied out, and their slopes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(table: Tensor, vector: Tensor) -> Tensor:
        """[R] table @ vector."""
        return (table * vector).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep both factors."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """[R, d] slopes of the table and [d] of the vector, of those [R] of the products."""
        table, vector = ctx.saved_tensors
        return slopes.unsqueeze(-1) * vector, weighted_row_sums(table, slopes)
