"""Likeness of items by text: the kernel of `base.items.item_text` without its diagonal, as rows of few values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ownview.seam.portable import SparseRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_ROWS = 256
"""Rows of the kernel that are made together."""


def nearest_by_text(vectors: csr_matrix, neighbours: int) -> SparseRows:
    """Every item's `neighbours` largest values of the kernel, itself left out; ties go to earlier items."""
    offsets, columns, values = [0], [], []
    for start in range(0, vectors.shape[0], _ROWS):
        block = (vectors[start : start + _ROWS] @ vectors.T).tocsr()
        block.sort_indices()
        for row in range(block.shape[0]):
            near, like = _row(block, row, start + row, neighbours)
            columns.append(near)
            values.append(like)
            offsets.append(offsets[-1] + len(near))
    joined = (np.concatenate(parts) if parts else np.zeros(0) for parts in (columns, values))
    places, likeness = joined
    return SparseRows(
        torch.tensor(offsets, dtype=torch.int64),
        torch.from_numpy(places.astype(np.int64)),
        torch.from_numpy(likeness.astype(np.float32)),
    )


def _row(block: Any, row: int, item: int, neighbours: int) -> tuple[Any, Any]:
    cells = slice(block.indptr[row], block.indptr[row + 1])
    near, like = block.indices[cells], block.data[cells]
    other = (near != item) & (like > 0)
    near, like = near[other], like[other]
    if len(near) > neighbours:
        kept = np.sort(np.argsort(-like, kind="stable")[:neighbours])
        near, like = near[kept], like[kept]
    return near, like
