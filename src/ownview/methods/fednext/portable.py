"""FedNext's portable forms: within a sitting, one linear term a scale."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ownview.methods.fednext.form import NextForm
from ownview.seam.portable import Linear, LowRank, Term


def by_scale(form: NextForm, weights: Sequence[Tensor | LowRank], bias: Tensor | None = None) -> Linear:
    """score = bias + sum of terms, for one weight matrix [m, m] a scale."""
    given, private = form.given, form.world.protection is not None
    terms = (Term(one, tau, given.length) for one, tau in zip(weights, given.scales, strict=True))
    pauses = ("scores after a pause are left out: a visitor who picks items is within a sitting",)
    return Linear(tuple(terms), bias, pauses if form.clock and not private else ())


def through_vectors(vectors: Tensor, weights: Tensor) -> list[LowRank]:
    """A matrix V B_k^T a scale k, for item vectors V [m, r] and weights B [m, K r] of K scales."""
    return [LowRank(vectors, part.T) for part in torch.split(weights, vectors.shape[1], dim=1)]
