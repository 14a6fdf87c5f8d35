"""FedNext under an accounted budget: three releases of sums, each of which a client moves by 1 at most.

Popularity and nearness of the K most popular items as in `parts.pairs.private_pairs`; item vectors are eigenvectors of
the second above its noise. The third sums transitions in those vectors, from pasts to items.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.methods.fednext.form import NextForm
from ownview.methods.fednext.memory import private_memory
from ownview.methods.fednext.portable import by_scale, through_vectors
from ownview.parts.pairs.positive_definite import solution
from ownview.parts.pairs.private_pairs import PrivatePairs, behind_by_popularity, bias_of, kept_items, kept_places
from ownview.parts.sequences.places import Places, faded, latest
from ownview.parts.sequences.transitions import future, past
from ownview.seam.client import Patch, Product, Sent, Summand, Summands
from ownview.seam.memory import Memory
from ownview.seam.portable import Linear
from ownview.seam.protection import Protection
from ownview.seam.roles import Param, held, received
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params

RELEASES = (0.1, 0.45, 0.45)
"""Shares of the budget, in mu^2 of Gaussian differential privacy: popularity, nearness, transitions."""

_TRANSITIONS = 3


@dataclass(frozen=True)
class PrivateNext(NextForm):
    """score of client u = Z B over the K most popular items, all others behind them by popularity.

    Z [S r] the client's pasts at S scales times item vectors V [K, r], B [S r, K] = (A + lambda d I)^-1 C as in the
    rank form. V has the eigenvectors of the noisy nearness whose eigenvalues are above the noise's edge, at most r of
    them. A client sends its A and C over their norm together. Within sittings and across them count the same.

    Args:
        world: numbers of clients and items.
        given: the settings; the rank is r.
        plan: the budget.
    """

    plan: Protection

    @property
    def pairs(self) -> PrivatePairs:
        """The first two releases: popularity and nearness."""
        return PrivatePairs(self.world, self.plan, 1.0, self.given.nearness, 1.0, RELEASES[1])

    @property
    def rank(self) -> int:
        """How many item vectors at most."""
        return min(self.given.rank, self.pairs.kept)

    @property
    def wide(self) -> int:
        """S r."""
        return len(self.given.scales) * self.rank

    def params(self) -> dict[str, Param]:
        """Received `found`: 1 for every item vector above the noise's edge."""
        kept = self.pairs.kept
        own = {name: param for name, param in self.pairs.params().items() if name != "weights"}
        return {
            **own,
            "vectors": received(kept, self.rank),
            "next": received(kept, self.wide),
            "found": held(self.rank),
        }

    def sends(self) -> dict[str, Summand]:
        """Popularity, nearness and transitions, one release each."""
        return {
            **self.pairs.sends(),
            "pasts": Summand((self.wide, self.wide), "products of its pasts in item vectors, once", symmetric=True),
            "follows": Summand((self.pairs.kept, self.wide), "pasts in item vectors before its items, once"),
        }

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """Popularity, nearness, and then transitions."""
        places = latest(p, "past", self.given.length)
        sent = self._nothing(places)
        if context.round < _TRANSITIONS:
            return sent | dict(self.pairs.report(p, batch, context)[0]), {}
        place, inside = kept_places(p, places.rows)
        inside = inside * places.mask
        pasts = self._pasts(places, p["vectors"][place] * inside[:, None])
        follows = future(len(places.rows), self.given.horizon, inside).T @ pasts * inside[:, None]
        norm = ((pasts @ pasts.T).square().sum() + follows.square().sum()).sqrt()
        norm = torch.where(norm > 0, norm, 1.0)
        none = place.new_zeros(0)
        return sent | {"pasts": Product(pasts / norm, pasts), "follows": Patch(place, none, follows / norm)}, {}

    def _pasts(self, places: Places, vectors: Tensor) -> Tensor:
        """[l, S r] row t: what had been before place t, at every scale."""
        size = len(places.rows)
        before = [past(size, tau, places.mask) @ vectors for tau in self.given.scales]
        return torch.cat(before, dim=1) * places.mask[:, None]

    def _nothing(self, places: Places) -> dict[str, Sent]:
        none, empty = places.rows.new_zeros(0), places.mask.new_zeros(0, self.wide)
        nothing = Patch(none, none, places.mask.new_zeros(0, 0))
        return {"popular": nothing, "pairs": nothing, "pasts": Product(empty, empty), "follows": nothing}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """By round: kept items, item vectors, then B; rows of missing vectors are noise and become 0."""
        if arrived.round == 1:
            return self.pairs.combine(sums, values, arrived)
        if arrived.round < _TRANSITIONS:
            return self._vectors(sums["pairs"])
        real = values["found"].repeat(len(self.given.scales))
        pasts, follows = sums["pasts"] * real[:, None] * real, sums["follows"] * real
        mean = pasts.diagonal().sum() / real.sum().clamp(min=1)
        pasts.diagonal().add_(torch.where(mean > 0, mean, 1.0) * self.given.ridge)
        return {"next": solution(pasts.double(), follows.T.double()).T.contiguous()}

    def _vectors(self, gram: Tensor) -> Params:
        """Eigenvectors above the noise's edge, the largest first; 0 in the place of those that are missing."""
        values, vectors = torch.linalg.eigh(gram.double())
        values, vectors = values.flip(0)[: self.rank], vectors.flip(1)[:, : self.rank]
        found = (values > self.pairs.edge).double()
        return {"vectors": vectors * found, "found": found}

    def scores(self, p: Params) -> Tensor:
        """[m] by the pasts that the client has now."""
        places = latest(p, "past", self.given.length)
        place, inside = kept_places(p, places.rows)
        vectors = p["vectors"][place] * inside[:, None]
        within = p["next"] @ torch.cat([faded(places, tau) @ vectors for tau in self.given.scales])
        return behind_by_popularity(p, within, beside_text=self.given.text > 0)

    def portable(self, received: Params) -> Linear:
        """One term a scale, through the item vectors of the K."""
        m, kept = self.world.num_items, kept_items(received)
        vectors, weights = received["vectors"].new_zeros(m, self.rank), received["next"].new_zeros(m, self.wide)
        vectors[kept], weights[kept] = received["vectors"], received["next"]
        bias = bias_of(received, beside_text=self.given.text > 0)
        return by_scale(self, through_vectors(vectors, weights), bias)

    def memory(self) -> Memory:
        """The kept items by each other, and by rank for every scale."""
        return private_memory(self, self.rank, self.pairs.kept)
