"""Pairs of items under an accounted budget: two releases of sums, each of which a client moves by 1 at most.

First what is popular, x / |x| of every client, so that few items are left to hide; then how near to each other clients
had those. Nothing is clipped: both summands have norm 1 as they are made. The number of users and the items count as
public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.parts.sequences.places import ALL, column, faded, latest, nearness, numbers_held, reach, weighed_rows
from ownview.seam.client import Patch, Summand, Summands
from ownview.seam.form import Form
from ownview.seam.memory import Memory
from ownview.seam.portable import Linear, Term
from ownview.seam.protection import Protection
from ownview.seam.roles import Param, received, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World

RELEASES = (0.1, 0.9)
"""Shares of the budget, in mu^2 of Gaussian differential privacy: popularity, then nearness."""

_POPULARITY, _NEARNESS = 1, 2
USERS_PER_ITEM = 5.0
FEWEST_ITEMS, MOST_ITEMS = 100, 4096
_FAR_BEHIND = 1000.0
_MARGIN = 1.1
"""Eigenvalues must be above the edge of the noise by so much."""
_DIAGONAL = 0.05
"""1 - B_ii is at least this: noise can make it anything, and a ridge regression without noise keeps it above."""


def items_kept(world: World, plan: Protection, share: float = RELEASES[1]) -> int:
    """K = n / (5 sigma), from 100 to 4096 and at most m; sigma the noise of the whole budget in a sum of norm 1 each.

    An eigenvalue of the sum grows with n / K for K items alike, and the edge of the noise with sigma sqrt K; more items
    are worth their noise as long as users are many. Found on generated worlds and on validation of goodbooks.

    Args:
        world: n and m.
        plan: the budget.
        share: of it that the release of nearness takes.
    """
    sigma = plan.in_sum(_NEARNESS) * math.sqrt(share)
    wanted = round(world.num_clients / (USERS_PER_ITEM * sigma))
    return min(max(wanted, FEWEST_ITEMS), MOST_ITEMS, world.num_items)


@dataclass(frozen=True)
class PrivatePairs(Form):
    """score of client u = x_u B over the K most popular items, all others behind them by popularity.

    B is EASE^R's of G, of which the eigenvalues v above the noise's edge e = 1.1 * 2 sigma sqrt(K / 2) are left, each
    as (v + sqrt(v^2 - e^2)) / 2. A client that has none of the K items gets them by popularity.

    Args:
        world: numbers of clients and items.
        plan: the budget.
        regularization: lambda.
        nearness: as FedEASE's.
        recency: likewise.
        share: of the budget that the release of nearness takes.
        beside_text: whether text stands beside the sums: items that are not among the K then have a score of 0 from
            these and are told apart by text, before popularity.
    """

    plan: Protection
    regularization: float
    nearness: float
    recency: float
    share: float = RELEASES[1]
    beside_text: bool = False

    @property
    def kept(self) -> int:
        """K."""
        return items_kept(self.world, self.plan, self.share)

    @property
    def edge(self) -> float:
        """Eigenvalues of the sum of nearness below it are taken for noise."""
        return _MARGIN * 2 * self.plan.in_sum(_NEARNESS) * math.sqrt(self.kept / 2)

    def params(self) -> dict[str, Param]:
        """What a client has; place: of every item among the K, from 1; 0 for all others."""
        m, kept = self.world.num_items, self.kept
        return {
            "past": timeline(),
            "popular": received(m),
            "place": received(m),
            "weights": received(kept, kept),
        }

    def sends(self) -> dict[str, Summand]:
        """What leaves a client."""
        return {
            "popular": Summand((self.world.num_items,), "which items it has, as a vector of norm 1, once"),
            "pairs": Summand(
                (self.kept, self.kept), "nearness of its popular items, as a matrix of norm 1, once", symmetric=True
            ),
        }

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """x / |x|; a round later the nearness of its items among the K, over its Frobenius norm; 0 without any."""
        places = latest(p, "past", ALL)
        none = places.rows.new_zeros(0)
        nothing = Patch(none, none, places.mask.new_zeros(0, 0))
        if context.round == _POPULARITY:
            share = places.mask / places.mask.sum().clamp(min=1).sqrt()
            return {"popular": column(places, share), "pairs": nothing}, {}
        place, inside = kept_places(p, places.rows)
        inside = inside * places.mask
        near = nearness(places, self.nearness) * inside[:, None] * inside
        norm = near.square().sum().sqrt()
        return {"popular": nothing, "pairs": Patch(place, place, near / torch.where(norm > 0, norm, 1.0))}, {}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """The K most popular items, ties by number; then B."""
        if arrived.round == _POPULARITY:
            popular = sums["popular"]
            best = popular.argsort(descending=True, stable=True)[: self.kept]
            place = torch.zeros_like(popular)
            place[best] = torch.arange(1, self.kept + 1, dtype=popular.dtype, device=popular.device)
            return {"popular": popular, "place": place}
        return {"weights": weights_above(sums["pairs"], self.regularization, self.edge)}

    def scores(self, p: Params) -> Tensor:
        """[m] by what the client had last."""
        places = latest(p, "past", reach(self.recency))
        place, inside = kept_places(p, places.rows)
        within = weighed_rows(faded(places, self.recency) * inside, place, p["weights"])
        return behind_by_popularity(p, within, beside_text=self.beside_text)

    def portable(self, received: Params) -> Linear:
        """What a client scores by: B in the rows and columns of the K."""
        m, kept = self.world.num_items, kept_items(received)
        weights = received["weights"].new_zeros(m, m)
        weights[kept[:, None], kept] = received["weights"]
        return Linear((Term(weights, self.recency),), bias=bias_of(received, beside_text=self.beside_text))

    def memory(self) -> Memory:
        """Eigenvectors stand twice while they are multiplied out, in float64."""

        def client(length: int) -> int:
            scoring = numbers_held(min(length, reach(self.recency)), self.kept, self.kept) + 4 * self.world.num_items
            return max(8 * length**2, scoring)

        advice = "raise --memory, or take data with fewer users or a smaller epsilon: fewer items are kept then"
        return Memory(client, 8 * self.kept**2, advice)


def behind_by_popularity(p: Params, within: Tensor, *, beside_text: bool) -> Tensor:
    """[m] scores of all items from those of the K: the others come behind them, by popularity; or have 0."""
    popular = p["popular"] / p["popular"].abs().max().clamp(min=1e-12)
    here, kept = kept_places(p, torch.arange(len(popular), device=popular.device))
    # Popularity decides among what is equal: everything, for a client without any of the items that are kept.
    others = 1e-6 * popular if beside_text else within.min() - 2 + popular
    return torch.where(kept > 0, within[here] + 1e-6 * popular, others)


def kept_items(p: Params) -> Tensor:
    """[K] the items that are kept, by place."""
    found = p["place"].round().long()
    order = found.argsort()
    return order[found[order] > 0]


def bias_of(p: Params, *, beside_text: bool) -> Tensor:
    """[m] what `behind_by_popularity` adds to scores, the same for everybody: no score of the K is below -1000."""
    popular = p["popular"] / p["popular"].abs().max().clamp(min=1e-12)
    return torch.where((p["place"] > 0) | beside_text, 1e-6 * popular, popular - _FAR_BEHIND)


def kept_places(p: Params, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Places [l] of items among the K, from 0, and 1 where they are among them."""
    found = p["place"][rows].round().long()
    return (found - 1).clamp(min=0), (found > 0).to(p["place"].dtype)


def weights_above(gram: Tensor, regularization: float, edge: float) -> Tensor:
    """[K, K] EASE^R's B of what rises above the edge of the noise, in float64; 0 where nothing does.

    Args:
        gram: [K, K] a symmetric sum with noise.
        regularization: lambda.
        edge: eigenvalues below it are taken for noise; those above were lifted by it, and are lowered again.
    """
    values, vectors = torch.linalg.eigh(gram.double())
    above = values > max(edge, 1e-6)
    values, vectors = values[above], vectors[:, above]
    lowered = (values + (values.square() - edge**2).clamp(min=0).sqrt()) / 2
    fitted: Tensor = (vectors * (lowered / (lowered + regularization))) @ vectors.T
    fitted = fitted / (1 - fitted.diagonal()).clamp(min=_DIAGONAL)
    return fitted.fill_diagonal_(0.0)
