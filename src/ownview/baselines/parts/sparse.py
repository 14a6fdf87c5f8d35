"""Sparse matrices of compressed rows."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor


def compressed_rows(offsets: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The matrix whose row r has values[offsets[r] : offsets[r + 1]] in the columns of the same places."""
    with warnings.catch_warnings():
        # PyTorch says once a process that this format is in beta; a user of a baseline can do nothing about it.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(offsets, columns, values, shape, check_invariants=False)
