"""Penalties against embeddings that use few of their dimensions, on two views of the batch's items.

All take the views [R, d] of the client's own rows and of the received ones, counts [R] of how often each row stands in
the batch (0 leaves it out), and gamma; they return a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import normalize

Reduction = Callable[[Tensor, Tensor, Tensor, float], Tensor]

_TINY = 1e-12
_TEMPERATURE = 1.0


def cross_correlation(own: Tensor, received: Tensor, counts: Tensor, gamma: float) -> Tensor:
    """ERR of PLGC: (1/d) sum_i (1 - H_ii)^2 + (gamma/d) sum_{i != j} H_ij^2.

    H_ij is the cosine of column i of the own view with column j of the received one, over the batch's samples.
    """
    weighted = counts.unsqueeze(-1) * own
    lengths = (weighted * own).sum(0).unsqueeze(-1) * (counts.unsqueeze(-1) * received.square()).sum(0)
    correlation = weighted.T @ received / (lengths + _TINY).sqrt()
    diagonal = _diagonal(correlation)
    outside = correlation.square().sum() - diagonal.square().sum()
    return ((1 - diagonal).square().sum() + gamma * outside) / len(diagonal)


def alignment_uniformity(own: Tensor, received: Tensor, counts: Tensor, gamma: float) -> Tensor:
    """AU (Wang and Isola 2020): mean |x - y|^2 + gamma log mean exp(-2 |x - x'|^2), on unit vectors.

    x the own, y the received view of a sample, x and x' the own views of two samples, a sample with itself included.
    """
    x, y = normalize(own, dim=-1), normalize(received, dim=-1)
    share = counts / counts.sum()
    aligned = share @ (x - y).square().sum(-1)
    apart = torch.exp(-2 * (2 - 2 * x @ x.T).clamp(min=0))
    return aligned + gamma * torch.log(share @ apart @ share + _TINY)


def contrast(own: Tensor, received: Tensor, counts: Tensor, gamma: float) -> Tensor:
    """DuoRec (Qiu et al. 2022): InfoNCE, the two views of an item against those of the other items of the batch.

    -log exp(x . y) / sum over items of exp(x . y'), on unit vectors, a mean over samples. No gamma.
    """
    x, y = normalize(own, dim=-1), normalize(received, dim=-1)
    similar = x @ y.T / _TEMPERATURE
    present = (counts > 0).to(own.dtype)
    total = torch.log(similar.exp() @ present + _TINY)
    return (counts / counts.sum()) @ (total - (x * y).sum(-1) / _TEMPERATURE)


def decorrelation(own: Tensor, received: Tensor, counts: Tensor, gamma: float) -> Tensor:
    """FedDecorr (Shi et al. 2023): |K|_F^2 / d^2, K the correlation matrix of the own view's dimensions. No gamma."""
    share = (counts / counts.sum()).unsqueeze(-1)
    centred = own - (share * own).sum(0)
    covariance = (share * centred).T @ centred
    spread = (_diagonal(covariance) + _TINY).sqrt()
    return (covariance / (spread.unsqueeze(-1) * spread)).square().sum() / len(spread) ** 2


def _diagonal(matrix: Tensor) -> Tensor:
    """[d] of a matrix [d, d]. `diagonal` would fix the number of clients of a stack in what is compiled."""
    return (matrix * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)).sum(0)


REDUCTIONS: Mapping[str, Reduction] = {
    "err": cross_correlation,
    "au": alignment_uniformity,
    "duorec": contrast,
    "feddecorr": decorrelation,
}
