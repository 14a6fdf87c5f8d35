"""A table's rows times a vector, and some of its rows, as it is fastest in training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding


def row_products(table: Tensor, vector: Tensor) -> Tensor:
    """[R] the product of every row of a table [R, d] with a vector [d].

    For a stack of clients a CPU makes one small matrix product a client of `table @ vector`, and two more for its
    slopes; multiplied out, all clients are done in one sweep, which a compiler makes one with what comes before and
    after it. Where one table serves everybody, as in predictions, `table @ vector` is a single large product and far
    better. So it is on a GPU, compiled or not: the vector's slopes are sums over all rows, and a library has far more
    of the GPU at work on those than a compiler does.
    """
    return (table * vector).sum(-1) if table.device.type == "cpu" else table @ vector


def rows_at(table: Tensor, rows: Tensor) -> Tensor:
    """[S, d] some rows [S] of a table [R, d].

    For a stack of clients `embedding` is the faster way; but it fixes the number of clients, so that what is compiled
    would have to be compiled again for every other.
    """
    return table[rows] if torch.compiler.is_compiling() else embedding(rows, table)
