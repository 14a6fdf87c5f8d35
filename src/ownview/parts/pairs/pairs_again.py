"""EASE^R solved once more where few items of the sum have changed: a rank update of the inverse that was kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ownview.parts.pairs.positive_definite import ease_inverse, residual, strongest, weights_of
from ownview.parts.pairs.takers import limited
from ownview.seam.server import Solved
from ownview.seam.training import Params

_FEW = 8
"""An update of k of m items pays where k is at most m over this: it costs about 4 k m^2, a factorisation m^3."""

_RIGHT = 1e-7
"""How far (G + lambda I) P may be from I on a probe; beyond it rounding of many updates has added up."""


@dataclass(frozen=True)
class PairsAgain:
    """P = (G + lambda I)^-1 and B = I - P / diag(P), from the sum G of pairs and from P of the sum before.

    Where G' = G + E D E^T, E picking k items, P' = P - P E D (I + E^T P E D)^-1 E^T P (Woodbury). Items that were added
    behind the others begin with the rows lambda^-1 I of an empty sum. What was kept of a whole factorisation stays
    until the next one: a person changes few items, and P of thousands of items is long to write.

    Args:
        regularization: lambda.
        takers: below which an item gets no weights (`parts.pairs.takers`); 0 for no limit.
    """

    regularization: float
    takers: int = 0

    def __call__(self, sums: Params, kept: Params) -> Solved:
        """Weights and the sum; kept: P in float64, the sum that it belongs to, and lambda."""
        gram = sums["pairs"]
        if (found := self._updated(gram, kept)) is not None:
            inverse, how = found
            return Solved({"gram": gram, "weights": self._weights(inverse, gram)}, {}, how)
        inverse = ease_inverse(gram, self.regularization)
        keeps = {"inverse": inverse, "gram": gram, "lambda": torch.tensor(self.regularization, dtype=gram.dtype)}
        weights = self._weights(inverse.clone(), gram)
        return Solved({"gram": gram, "weights": weights}, keeps, "whole factorisation")

    def _weights(self, inverse: Tensor, gram: Tensor) -> Tensor:
        return limited(strongest(weights_of(inverse)), gram.diagonal(), self.takers)

    def _updated(self, gram: Tensor, kept: Params) -> tuple[Tensor, str] | None:
        """P' and how; None where all is solved anew."""
        if not kept or float(kept["lambda"]) != self.regularization or len(kept["gram"]) > len(gram):
            return None
        known, more = len(kept["gram"]), len(gram) - len(kept["gram"])
        change = gram - pad(kept["gram"], (0, more, 0, more))
        items = torch.nonzero(change.any(1))[:, 0]
        if _FEW * len(items) > len(gram):
            return None
        inverse = pad(kept["inverse"], (0, more, 0, more))
        inverse.diagonal()[known:] = 1 / self.regularization
        if len(items):
            change, columns = change[items[:, None], items], inverse[:, items]
            middle = torch.eye(len(items), dtype=gram.dtype) + columns[items] @ change
            inverse.addmm_(columns @ change, torch.linalg.solve(middle, columns.T), alpha=-1)
        if not residual(gram, self.regularization, inverse) < _RIGHT:
            return None
        return inverse, f"rank update of {len(items):,} of {len(gram):,} items"
