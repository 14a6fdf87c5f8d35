"""Inverses of long-tailed Gram matrices: items that one client alone has are eliminated before anything is solved.

Such an item has pairs with that client's items only, and with those of its kind that the same client has. So the part
of the matrix that is about them falls into a small block a client, and what is left to solve are the other items. In
catalogues of thousands of items these are half of them, and solving costs the third power of their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = npt.NDArray[Any]
Places = npt.NDArray[np.int64]

_WORTH = 8
"""One of so many items must be in the tail, or elimination costs more than it saves."""

_MOST_PAIRS = 1024
"""A row with more cells belongs to no tail: sparse products would not be shorter than dense ones."""

_LARGEST_BLOCK = 256
"""Items of one block that is inverted as it is."""

_ROWS = 512
"""Rows that are made or looked at together."""


@dataclass(frozen=True, eq=False)
class Tail:
    """(G + lambda I) in two parts, A = [[T, S], [S^T, R]], T with a small block a client.

    Args:
        items: [t] of the tail, block by block.
        rest: [r] all others, ascending.
        pairs: [t, r] S.
        blocks: [t, t] T^-1.
        ties: [t, r] T^-1 S.
        regularization: lambda.
    """

    items: Places
    rest: Places
    pairs: csr_matrix
    blocks: csr_matrix
    ties: csr_matrix
    regularization: float

    def remaining(self, gram: Tensor, kind: torch.dtype) -> Tensor:
        """[r, r] R - S^T T^-1 S, what is left to invert."""
        left = torch.empty(len(self.rest), len(self.rest), dtype=kind)
        for here in _slices(len(self.rest)):
            left[here] = gram[torch.from_numpy(self.rest[here])][:, torch.from_numpy(self.rest)].to(kind)
        left.diagonal().add_(self.regularization)
        taken = (self.pairs.T @ self.ties).tocoo()
        left.numpy()[taken.row, taken.col] -= taken.data
        return left

    def whole(self, solved: Tensor, kind: torch.dtype) -> Tensor:
        """[m, m] (G + lambda I)^-1 from P = (R - S^T T^-1 S)^-1 [r, r], row by row.

        With W = T^-1 S the parts are [[T^-1 + W P W^T, -W P], [-P W^T, P]].
        """
        inner, ties = solved.numpy(), self.ties.astype(solved.numpy().dtype)
        out = torch.empty(len(self.items) + len(self.rest), len(self.items) + len(self.rest), dtype=kind)
        written = out.numpy()
        for here in _slices(len(self.items)):
            across = ties[here] @ inner
            block = np.empty((len(across), len(out)), dtype=inner.dtype)
            block[:, self.rest] = -across
            block[:, self.items] = (ties @ np.ascontiguousarray(across.T)).T + self.blocks[here].toarray()
            written[self.items[here]] = block
        for here in _slices(len(self.rest)):
            block = np.empty((len(inner[here]), len(out)), dtype=inner.dtype)
            block[:, self.rest] = inner[here]
            block[:, self.items] = -(ties @ np.ascontiguousarray(inner[:, here])).T
            written[self.rest[here]] = block
        return out


def tail_of(gram: Tensor, regularization: float) -> Tail | None:
    """The tail of a Gram matrix [m, m]; None where it is too short to help, or on a GPU, which solves faster."""
    if gram.device.type != "cpu" or int((gram.diagonal() <= 1).sum()) * _WORTH < len(gram):
        return None
    from scipy.sparse import block_diag, csr_matrix  # noqa: PLC0415 - slow to import

    items, cells, sizes = _in_small_blocks(*_thin_rows(gram))
    if len(items) * _WORTH < len(gram):
        return None
    rest = np.setdiff1d(np.arange(len(gram)), items)
    pairs, own = cells[:, rest], cells[:, items]
    ends = np.cumsum(sizes)
    each = (own[end - size : end, end - size : end].toarray() for size, end in zip(sizes, ends, strict=True))
    inverses = (np.linalg.inv(one + regularization * np.eye(len(one))) for one in each)
    # Sparse matrices in, a sparse matrix out: of plain arrays scipy makes a matrix or an array, by its version.
    blocks = block_diag([csr_matrix(one) for one in inverses], format="csr")
    return Tail(items, rest, pairs, blocks, (blocks @ pairs).tocsr(), regularization)


def left_to_solve(people: Tensor) -> int:
    """Items that are left where so many people [m] had each: all, or those of several where the tail is long enough."""
    several = int((people > 1).sum())
    return several if (len(people) - several) * _WORTH >= len(people) else len(people)


def _thin_rows(gram: Tensor) -> tuple[Places, csr_matrix]:
    """Items [t] of at most one client, and their rows [t, m] where they have few cells."""
    from scipy.sparse import csr_matrix, vstack  # noqa: PLC0415 - slow to import

    candidates = torch.nonzero(gram.diagonal() <= 1)[:, 0]
    kept, found = [torch.zeros(0, dtype=torch.long)], [csr_matrix((0, len(gram)))]
    for some in torch.split(candidates, _ROWS):
        rows = gram[some]
        thin = torch.count_nonzero(rows, dim=1) <= _MOST_PAIRS
        kept.append(some[thin])
        found.append(csr_matrix(rows[thin].double().numpy()))
    return torch.cat(kept).numpy(), vstack(found, format="csr")


def _in_small_blocks(items: Places, cells: csr_matrix) -> tuple[Places, csr_matrix, Places]:
    """Those that fall into blocks of at most `_LARGEST_BLOCK` items, block by block, and how many each block has."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to import

    _, label = connected_components(cells[:, items], directed=False)
    small = np.bincount(label)[label] <= _LARGEST_BLOCK
    order = np.argsort(label[small], kind="stable")
    return items[small][order], cells[small][order], np.unique(label[small], return_counts=True)[1]


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _ROWS, count)) for start in range(0, count, _ROWS))
