"""FedEASE: EASE^R from a sum over clients, exact in one round, with time where a client has it.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019. The model needs of the data only the Gram matrix
X^T X, whose entry (i, j) counts the users that have both items: a sum of one small matrix per user. Here a pair may
count the less the further apart a user had the two, and a user's items the less the longer ago they were: the order of
a history is used at home and stays there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.places import faded, latest, nearness, numbers_held, reach, weighed_rows
from ownview.parts.positive_definite import MOST_IN_DOUBLE, ease_weights, symmetrised
from ownview.parts.private_pairs import RELEASES, PrivatePairs
from ownview.seam.client import Client, Patch, Reporting, Summand, Summands
from ownview.seam.initial import Constant
from ownview.seam.method import ReportingMethod
from ownview.seam.portable import Linear, Portable, Term
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived, Server, Sums
from ownview.seam.training import Batch, Context, Params, World

_ALL = 2**31


@dataclass(frozen=True)
class FedEASE(ReportingMethod):
    """score of client u = x_u B, with P = (G + lambda I)^-1, B = I - P / diag(P), G = sum_u K_u.

    K_u [m, m] has exp(-|a - b| / nearness) for the items at places a and b of the client's history, else 0; x_u has
    exp(-k / recency) for its k-th latest item, k from 0. Places count different items; a repeated one has its latest.
    With both infinite K_u = x_u^T x_u, x_u in {0, 1}^m, and the model is EASE^R; so it is on data without any order.

    A client sends its pairs once. Where it takes part again it has nothing to add, so that with partial participation G
    is that of everybody who took part so far. Under an accounted budget it has the form of `PrivatePairs`: two rounds.
    """

    name: ClassVar[str] = "fedease"
    title: ClassVar[str] = "FedEASE"
    summary: ClassVar[str] = "EASE^R from summed pairs, near ones and late items first: exact, in one round"
    paper: ClassVar[str] = "Steck, WWW 2019 (the model); sums over clients and time here"
    enough: ClassVar[int | None] = 1
    releases: ClassVar[tuple[float, ...]] = RELEASES

    regularization: float = setting(
        100.0, "lambda, added to the diagonal of the summed pairs", above=0, search=Between(10.0, 3000.0, log=True)
    )
    nearness: float = setting(
        16.0, "places after which a pair of a history counts 1/e; inf: all pairs count 1",
        above=0, infinite=True, search=OneOf((4.0, 8.0, 16.0, 32.0, math.inf)),
    )  # fmt: skip
    recency: float = setting(
        4.0, "places after which an item counts 1/e when its client is asked; inf: all items count 1",
        above=0, infinite=True, search=OneOf((2.0, 4.0, 8.0, 16.0, math.inf)),
    )  # fmt: skip

    def params(self, world: World) -> dict[str, Param]:
        """told: 1 once the client has sent. The server keeps G to itself; B goes to everybody."""
        m = world.num_items
        return {
            "past": timeline(),
            "told": private(initial=Constant(0.0)),
            "weights": received(m, m),
            "gram": held(m, m),
        }

    def notes(self, world: World) -> tuple[str, ...]:
        """Time is left out where there is none; under a budget, so are most items."""
        private = self._private(world)
        if private is not None:
            return (f"fedease under a budget: the {private.kept} most popular of {world.num_items} items count",)
        if world.order != "none" or (math.isinf(self.nearness) and math.isinf(self.recency)):
            return ()
        return (
            f"fedease: the data has no order in time; nearness={self.nearness:g} and recency={self.recency:g} are "
            "taken as infinite, which is EASE^R",
        )

    def client(self, world: World) -> Client:
        """The client's half; without time where the data has none."""
        if world.order == "none" and not (math.isinf(self.nearness) and math.isinf(self.recency)):
            return replace(self, nearness=math.inf, recency=math.inf).client(world)
        private = self._private(world)
        return super().client(world) if private is None else private.client()

    def _private(self, world: World) -> PrivatePairs | None:
        plan, timeless = world.protection, world.order == "none"
        near, recent = (math.inf, math.inf) if timeless else (self.nearness, self.recency)
        return None if plan is None else PrivatePairs(self.regularization, near, recent, world, plan)

    def sends(self, world: World) -> dict[str, Summand]:
        """K_u, m x m."""
        return {"pairs": Summand((world.num_items, world.num_items), "pairs of its items, once", symmetric=True)}

    def reporting(self, world: World) -> Reporting:
        """B serves predictions alone, so clients receive it after the round."""

        def working(length: int) -> int:
            return max(8 * length**2, numbers_held(min(length, reach(self.recency)), world.num_items, world.num_items))

        return Reporting(self.sends(world), self.report, receives_after=True, working=working)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The client's pairs, unless it has told them before."""
        places = latest(p, "past", _ALL)
        pairs = nearness(places, self.nearness) * (1 - p["told"])
        return {"pairs": Patch(places.rows, places.rows, pairs)}, {"told": torch.ones_like(p["told"])}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Add to G, where the sum is, and solve; noise may have made the sum lopsided, so both halves are averaged."""
        gram = symmetrised(sums["pairs"]).add_(values["gram"])
        return {"gram": gram, "weights": ease_weights(gram, self.regularization)}

    def scores(self, p: Params) -> Tensor:
        """[m] x_u B, of the rows of B that the client's items have."""
        places = latest(p, "past", reach(self.recency))
        return weighed_rows(faded(places, self.recency), places.rows, p["weights"])

    def portable(self, received: Params, world: World) -> Portable:
        """Exactly what a client scores by."""
        private = self._private(world)
        if private is not None:
            return private.portable(received)
        fades = math.inf if world.order == "none" else self.recency
        return Linear((Term(received["weights"], fades, regularization=self.regularization),))

    def server(self, world: World) -> Server:
        """Solving holds one more matrix of the items it is solved for, in float64 where they are not too many."""
        private = self._private(world)
        if private is not None:
            return private.server()
        working = 2 * min(world.num_items, MOST_IN_DOUBLE) ** 2
        advice = "raise --memory, or take data with fewer items: the Gram matrix is items by items"
        return Server(Sums(self.combine, working=working, advice=advice, in_place=True))
