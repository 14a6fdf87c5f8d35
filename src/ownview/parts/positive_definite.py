"""Equations with a symmetric matrix that sums have made positive definite, unless noise was added to them."""

from __future__ import annotations

import torch
from torch import Tensor


def inverse(matrix: Tensor) -> Tensor:
    """[n, n] by Cholesky; where noise has left the matrix without a factor, as that of any other matrix."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.linalg.inv(matrix) if bool(failed) else torch.cholesky_inverse(factor)


def solution(matrix: Tensor, right: Tensor) -> Tensor:
    """[n, k] X with matrix X = right, likewise."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.linalg.solve(matrix, right) if bool(failed) else torch.cholesky_solve(right, factor)


def ease_weights(gram: Tensor, regularization: float) -> Tensor:
    """[m, m] EASE^R's B = I - P / diag(P) of a Gram matrix, P = (G + lambda I)^-1, in float64."""
    ridged = gram.to(torch.float64, copy=True)
    ridged.diagonal().add_(regularization)
    weights = inverse(ridged)
    weights /= -weights.diagonal().clone()
    return weights.fill_diagonal_(0.0)
