"""FedEASE: EASE^R from a sum over clients, exact in one round.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019. The model needs of the data only the Gram matrix
X^T X, whose entry (i, j) counts the users that have both items: a sum of one small matrix per user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.seam.client import Product, Reporting, Summand, Summands
from ownview.seam.initial import Constant
from ownview.seam.method import ReportingMethod
from ownview.seam.roles import Param, held, history, private, received
from ownview.seam.server import Arrived, Server, Sums
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class FedEASE(ReportingMethod):
    """score of client u = x_u B, with P = (G + lambda I)^-1, B = I - P / diag(P), G = sum_u x_u^T x_u, x_u in {0, 1}^m.

    A client sends its co-occurrences once. Where it takes part again it has nothing to add, so that with partial
    participation G is that of everybody who took part so far.
    """

    name: ClassVar[str] = "fedease"
    title: ClassVar[str] = "FedEASE"
    summary: ClassVar[str] = "EASE^R from summed co-occurrences: exact, in one round"
    paper: ClassVar[str] = "Steck, WWW 2019 (the model); sums over clients here"
    enough: ClassVar[int | None] = 1

    regularization: float = setting(
        200.0, "lambda, added to the diagonal of the Gram matrix", above=0, search=Between(10.0, 3000.0, log=True)
    )

    def params(self, world: World) -> dict[str, Param]:
        """told: 1 once the client has sent. The server keeps G to itself; B goes to everybody."""
        m = world.num_items
        return {
            "seen": history(),
            "told": private(initial=Constant(0.0)),
            "weights": received(m, m),
            "gram": held(m, m),
        }

    def sends(self, world: World) -> dict[str, Summand]:
        """x^T x, m x m."""
        return {"pairs": Summand((world.num_items, world.num_items), "pairs of its items, once", symmetric=True)}

    def reporting(self, world: World) -> Reporting:
        """B serves predictions alone, so clients receive it after the round."""
        return replace(super().reporting(world), receives_after=True)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The client's pairs, unless it has told them before."""
        seen = p["seen"][None]
        return {"pairs": Product(seen * (1 - p["told"]), seen)}, {"told": torch.ones_like(p["told"])}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Add to G and solve, in float64; noise may have made the sum lopsided, so both halves are averaged."""
        gram = values["gram"] + (sums["pairs"] + sums["pairs"].T) / 2
        ridged = gram.to(torch.float64, copy=True)
        ridged.diagonal().add_(self.regularization)
        weights = torch.linalg.inv(ridged)
        weights /= -weights.diagonal().clone()
        return {"gram": gram, "weights": weights.fill_diagonal_(0.0)}

    def scores(self, p: Params) -> Tensor:
        """[m] x_u B."""
        return p["seen"] @ p["weights"]

    def server(self, world: World) -> Server:
        """Solving holds G + lambda I, its factors and its inverse, in float64: nothing but memory helps."""
        advice = "raise --memory, or take data with fewer items: the Gram matrix is items by items"
        return Server(Sums(self.combine, working=6 * world.num_items**2, advice=advice))
