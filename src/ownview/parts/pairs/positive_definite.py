"""Equations with a symmetric matrix that sums have made positive definite, unless noise was added to them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ownview.base.memory.freed import give_freed_memory_back
from ownview.parts.pairs.tail import tail_of

MOST_IN_DOUBLE = 12_500
"""Items up to which EASE^R is solved in double precision in every run: a minute on two cores, and 1.25 GB."""

KEPT = 512
"""Strongest weights of an item that stay where there are more items than that: 99.4 % of the top ten of a shop's 3,000
people are those of all weights (`benchmarks/kept_weights.py`)."""

_RIGHT = 1e-3
"""How far (G + lambda I) P v may be from a probe v in single precision; beyond it double precision solves again."""

_SIDE = 512
"""Of the squares in which both halves of a matrix are averaged: two of them are in the cache together."""


def solution(matrix: Tensor, right: Tensor) -> Tensor:
    """[n, k] X with matrix X = right, by Cholesky; where noise has left no factor, as with any other matrix."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.linalg.solve(matrix, right) if bool(failed) else torch.cholesky_solve(right, factor)


def ease_weights(gram: Tensor, regularization: float, *, in_place: bool = False) -> Tensor:
    """[m, m] EASE^R's B = I - P / diag(P) of a Gram matrix, P = (G + lambda I)^-1, in the precision of G.

    Solved for all items but those of the tail (`parts.pairs.tail`), in float64 where these are at most
    `MOST_IN_DOUBLE`, else in the precision of G. Besides G and B one matrix of the items solved for is held at most, in
    that precision; with `in_place` no B besides, which is written over G then. Beyond so many items in all, `KEPT`
    weights of a row stay.
    """
    found = weights_of(ease_inverse(gram, regularization))
    return strongest(gram.copy_(found) if in_place else found.to(gram.dtype))


def ease_inverse(gram: Tensor, regularization: float) -> Tensor:
    """[m, m] P of `ease_weights`, in the precision that it is solved in; in that of G where a tail was eliminated.

    What single precision solved is tried on a probe, and solved again in double precision where it fails.
    """
    tail = tail_of(gram, regularization)
    count = len(gram) if tail is None else len(tail.rest)

    def solved(kind: torch.dtype) -> Tensor:
        if tail is not None:
            return tail.whole(inverse(lambda: tail.remaining(gram, kind)), gram.dtype)

        def ridged() -> Tensor:
            made = gram.to(kind, copy=True)
            made.diagonal().add_(regularization)
            return made

        return inverse(ridged)

    kind = solved_in(gram.dtype, count)
    found = solved(kind)
    if kind is torch.float64 or residual(gram, regularization, found) < _RIGHT:
        return found
    del found
    return solved(torch.float64)


def residual(gram: Tensor, regularization: float, inverted: Tensor) -> float:
    """max |(G + lambda I) P v - v| for v_i = cos(i), which is 1 at most; not a number where P has one that is none."""
    probe = torch.cos(torch.arange(len(gram), dtype=gram.dtype, device=gram.device))
    found = inverted.to(gram.dtype) @ probe
    return float((gram @ found + regularization * found - probe).abs().max())


def strongest(weights: Tensor, kept: int = KEPT) -> Tensor:
    """Weights [m, m] in place, with 0 for all but the `kept` strongest of a row where m is above `MOST_IN_DOUBLE`.

    A row is what an item says of all others. The strongest are those of largest absolute value: lists are nearer to
    those of all weights than by the largest values, or by column. Those as strong as the last one stay too.
    """
    if len(weights) > max(MOST_IN_DOUBLE, kept):
        for band in torch.split(weights, _SIDE):
            size = band.abs()
            band.masked_fill_(size < size.topk(kept, dim=1).values[:, -1:], 0.0)
    return weights


def inverse(made: Callable[[], Tensor]) -> Tensor:
    """[n, n] by Cholesky, in the place of the symmetric matrix that `made` makes.

    Where noise has left the matrix without a factor, as that of any other matrix, which is made once more for it.
    """
    give_freed_memory_back()  # what is made now is mostly the largest there ever is
    place = made().T  # symmetric, so nothing moves: LAPACK goes by column
    failed = torch.empty((), dtype=torch.int32, device=place.device)
    torch.linalg.cholesky_ex(place, out=(place, failed))
    if not bool(failed):
        return torch.cholesky_inverse(place, out=place).T
    del place
    general: Tensor = torch.linalg.inv(made())
    return general


def solved_in(kind: torch.dtype, count: int) -> torch.dtype:
    """The precision that EASE^R of so many items is solved in, in a run of precision `kind`."""
    return torch.float64 if count <= MOST_IN_DOUBLE else kind


def symmetrised(matrix: Tensor) -> Tensor:
    """(M + M^T) / 2 in the place of M [n, n]."""
    rows = [torch.split(band, _SIDE, dim=1) for band in torch.split(matrix, _SIDE)]
    for i, band in enumerate(rows):
        for j in range(i + 1):
            mean = (band[j] + rows[j][i].T) / 2
            band[j].copy_(mean)
            rows[j][i].copy_(mean.T)
    return matrix


def weights_of(inverted: Tensor) -> Tensor:
    """I - P / diag(P) in the place of P."""
    return inverted.div_(-inverted.diagonal().clone()).fill_diagonal_(0.0)
