"""FedEASE's algorithm: EASE^R from a sum over clients, exact in one round.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019. The model needs of the data only the Gram matrix
X^T X, whose entry (i, j) counts the users that have both items: a sum of one small matrix per user. Here a pair may
count the less the further apart a user had the two, and a user's items the less the longer ago they were: the order of
a history is used at home and stays there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.methods.fedease.settings import EaseSettings
from ownview.parts.pairs.history_kernel import HistoryKernel
from ownview.parts.pairs.positive_definite import ease_weights, symmetrised
from ownview.parts.pairs.takers import limited
from ownview.parts.sequences.places import ALL, faded, latest, nearness, reach, weighed_rows
from ownview.parts.sequences.sent_before import by_sending, sent_by
from ownview.seam.client import Nearby, Patch, Summand, Summands
from ownview.seam.honest_summands import Honest
from ownview.seam.initial import Constant
from ownview.seam.method import ReportingMethod
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class SummedPairs(EaseSettings, ReportingMethod):
    """score of client u = x_u B, with P = (G + lambda I)^-1, B = I - P / diag(P), G = sum_u K_u.

    K_u [m, m] has exp(-|a - b| / nearness) for the items at places a and b of the client's history, else 0; x_u has
    exp(-k / recency) for its k-th latest item, k from 0. Places count different items; a repeated one has its latest.
    With both infinite K_u = x_u^T x_u, x_u in {0, 1}^m, and the model is EASE^R.

    A client sends a pair once. Where it takes part again it adds the pairs that are new since then, none where its
    history does not grow, so that G is the sum over all clients that have taken part so far.
    """

    def params(self, world: World) -> dict[str, Param]:
        """Private `told`: what the client has sent (`parts.sequences.sent_before`); the server's G; B for clients."""
        m = world.num_items
        return {
            "past": timeline(),
            "told": private(*(m,) * world.grows, initial=Constant(0.0)),
            "weights": received(m, m),
            "gram": held(m, m),
        }

    def sends(self, world: World) -> dict[str, Summand]:
        """K_u, m x m."""
        m, honest = world.num_items, Honest(0.0, 1.0, structure=HistoryKernel(self.nearness))
        return {"pairs": Summand((m, m), "pairs of its items, once", symmetric=True, honest=honest)}

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """K_u without the pairs that the client has sent before."""
        if not p["told"].dim():  # its history does not grow: all or nothing
            places = latest(p, "past", ALL)
            new = places.mask * (1 - p["told"])
            return {"pairs": Nearby(places.rows, new, new.new_full((), self.nearness))}, {
                "told": torch.ones_like(p["told"])
            }
        places, before = by_sending(latest(p, "past", ALL), p["told"])
        pairs = nearness(places, self.nearness).mul_(1 - before[:, None] * before)
        return {"pairs": Patch(places.rows, places.rows, pairs)}, {"told": sent_by(places, p["told"], context)}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Add the sum to G, in place, and solve for B; the sum's two halves are averaged, as noise is not symmetric."""
        gram = symmetrised(sums["pairs"]).add_(values["gram"])
        weights = ease_weights(gram, self.regularization)
        return {"gram": gram, "weights": limited(weights, gram.diagonal(), self.takers)}

    def scores(self, p: Params) -> Tensor:
        """[m] x_u B, from the rows of B of the client's items."""
        places = latest(p, "past", reach(self.recency))
        return weighed_rows(faded(places, self.recency), places.rows, p["weights"])
