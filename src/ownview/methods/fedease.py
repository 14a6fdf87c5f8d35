"""FedEASE: EASE^R from a sum over clients, exact in one round.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019. The model needs of the data only the Gram matrix
X^T X, whose entry (i, j) counts the users that have both items: a sum of one small matrix per user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.seam.gathering import Arrived, Gathering, History, Product, Summand, Summands, Value
from ownview.seam.training import Context, Params, World


@dataclass(frozen=True)
class FedEASE(Gathering):
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

    def server(self, world: World) -> dict[str, Value]:
        """G stays on the server, B goes to everybody."""
        square = (world.num_items, world.num_items)
        return {"gram": Value(square, down=False), "weights": Value(square)}

    def own(self, world: World) -> dict[str, Value]:
        """told: 1 once the client has sent."""
        return {"told": Value(())}

    def summands(self, world: World) -> dict[str, Summand]:
        """x^T x, m x m."""
        return {"pairs": Summand((world.num_items, world.num_items), "pairs of its items, once")}

    def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
        """Its pairs, unless it has told them before."""
        seen = history.seen[None]
        return {"pairs": Product(seen * (1 - own["told"]), seen)}, {"told": torch.ones_like(own["told"])}

    def numbers_sent(self, history: History, own: Params) -> Params:
        """K (k + 1) / 2 places in the upper triangle; every entry there is 1."""
        k = history.seen.sum()
        return {"pairs": (1 - own["told"]) * k * (k + 1) / 2}

    def combine(self, sums: Params, server: Params, arrived: Arrived) -> Params:
        """Add to G and solve, in float64; noise may have made the sum lopsided, so both halves are averaged."""
        gram = server["gram"] + (sums["pairs"] + sums["pairs"].T) / 2
        ridged = gram.to(torch.float64, copy=True)
        ridged.diagonal().add_(self.regularization)
        weights = torch.linalg.inv(ridged)
        weights /= -weights.diagonal().clone()
        return {"gram": gram, "weights": weights.fill_diagonal_(0.0)}

    def scores(self, history: History, own: Params, server: Params) -> Tensor:
        """[m] x_u B."""
        return history.seen @ server["weights"]

    def server_working(self, world: World) -> int:
        """G + lambda I, its factors and its inverse, in float64."""
        return 6 * world.num_items**2

    def advice(self) -> str:
        """Nothing but memory helps: everything is m x m."""
        return "raise --memory, or take data with fewer items: the Gram matrix is items by items"
