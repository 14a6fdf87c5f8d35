"""FedNext by rank: from item vectors to items, never items by items."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.methods.fednext.form import NextForm
from ownview.methods.fednext.memory import rank_memory
from ownview.methods.fednext.portable import by_scale, through_vectors
from ownview.parts.pairs.positive_definite import solution
from ownview.parts.sequences.places import Places, column, faded, latest, nearness, whole_rows
from ownview.parts.sequences.transitions import across, coming_back, future, past, standardised
from ownview.seam.client import Patch, Product, Sent, Summand, Summands
from ownview.seam.initial import Constant, Normal
from ownview.seam.memory import Memory
from ownview.seam.portable import Linear
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params


@dataclass(frozen=True)
class RankForm(NextForm):
    """Scores Z B, Z [Kk] the client's pasts at K scales times item vectors V [m, k], B [Kk, m] = (A + lambda d I)^-1 C.

    A = sum_u w_u (P_u V)^T (P_u V), C = sum_u w_u (P_u V)^T F_u, with P_u and F_u as in the full form, d the mean
    diagonal of A. V spans the leading space of N = S^-1 G S^-1, G the summed nearness of FedEASE, S^2 = diag(G) + 1;
    its rows are divided once more by the square root of S. Rounds 1 to `iterations` find it: clients send N V row by
    row, the server makes the columns orthonormal. Only the space matters, no rotation of it. The round after that sums
    A and C.
    After a pause a client adds up its standardised scores across sittings, likewise through V, and recent popularity.
    """

    def params(self) -> dict[str, Param]:
        """Private `told`: 1 once the client has sent its transitions. The server keeps the sums."""
        m, k = self.world.num_items, self.given.rank
        wide = len(self.given.scales) * k
        params = {"past": timeline(), "told": private(initial=Constant(0.0))}
        params |= {"vectors": received(m, k, initial=Normal(1.0)), "next": received(m, wide)}
        params |= {"pasts": held(wide, wide), "follows": held(m, wide)}
        if self.clock:
            params |= {"across": received(m, k), "recent": received(m), "before": held(k, k), "after": held(m, k)}
        return params

    def sends(self) -> dict[str, Summand]:
        """Sums for item vectors, then sums for B."""
        m, k = self.world.num_items, self.given.rank
        wide = len(self.given.scales) * k
        sends = {
            "counts": Summand((m,), "which items it has, while item vectors are found"),
            "spread": Summand((m, k), "vectors of items near each of its items, while item vectors are found"),
            "pasts": Summand((wide, wide), "products of its pasts in item vectors, once", symmetric=True),
            "follows": Summand((m, wide), "pasts in item vectors before each of its items, once"),
        }
        if self.clock:
            sends |= {
                "before": Summand((k, k), "products of its past before pauses in item vectors, once", symmetric=True),
                "after": Summand((m, k), "past in item vectors before each sitting's items, once"),
                "recent": Summand((m,), "how recent its items are, once"),
            }
        return sends

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """While vectors are found, what lies near each item; then the client's transitions, or 0 if sent before."""
        places = latest(p, "past", self.given.length)
        vectors = p["vectors"][places.rows] * places.mask[:, None]
        sent = self._nothing(vectors)
        if context.round <= self.given.iterations:
            spread = nearness(places, self.given.nearness) @ vectors
            return sent | {"counts": column(places, places.mask), "spread": whole_rows(places, spread)}, {}
        new = 1 - p["told"]
        sent |= self._transitions(places, vectors, self.weight(places) * new)
        if self.clock:
            parted = across(places, self.given.pause, self.given.sittings)
            before = parted.before @ vectors
            sent |= {
                "before": Product(before * new, before),
                "after": whole_rows(places, parted.after.T @ before * new),
                "recent": column(places, self.recently(p, places) * new),
            }
        return sent, {"told": torch.ones_like(p["told"])}

    def _transitions(self, places: Places, vectors: Tensor, weight: Tensor) -> dict[str, Sent]:
        size = len(places.rows)
        # Row t is about place t, which must hold an item: before the first there is no past, and padding is no item.
        pasts = torch.cat([past(size, tau, weight) @ vectors for tau in self.given.scales], dim=1)
        follows = (future(size, self.given.horizon, weight).T @ pasts) * places.mask[:, None]
        return {"pasts": Product(pasts * weight, pasts), "follows": whole_rows(places, follows * weight)}

    def _nothing(self, like: Tensor) -> dict[str, Sent]:
        """Every summand of a client that has nothing to send."""
        none = torch.zeros(0, dtype=torch.long, device=like.device)
        empty: dict[str, Sent] = {}
        for name, one in self.sends().items():
            factor = like.new_zeros(0, one.shape[-1])
            empty[name] = Product(factor, factor) if one.symmetric else Patch(none, none, like.new_zeros(0, 0))
        return empty

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """One iteration on the item vectors; after the last, B from the sums."""
        if arrived.round <= self.given.iterations:
            return {"vectors": self._vectors(sums, last=arrived.round == self.given.iterations)}
        new = {name: values[name] + sums[name] for name in sums if name not in ("counts", "spread")}
        new["next"] = _ridge(new["pasts"], new["follows"], self.given.ridge)
        if self.clock:
            new["across"] = _ridge(new["before"], new["after"], self.given.across_regularization)
        return new

    def _vectors(self, sums: Params, *, last: bool) -> Tensor:
        """[m, k] a step nearer to the leading space: its columns orthonormal, rows as clients need them next."""
        root = (sums["counts"].clamp(min=0) + 1).sqrt()[:, None]
        found: Tensor = torch.linalg.qr(sums["spread"] / root)[0]
        return found / (root.sqrt() if last else root)

    def scores(self, p: Params) -> Tensor:
        """[m] within a sitting by the pasts; after a pause by what lies across it."""
        given = self.given
        places = latest(p, "past", given.length)
        vectors = p["vectors"][places.rows]
        within = p["next"] @ torch.cat([faded(places, tau) @ vectors for tau in given.scales])
        if not self.clock:
            return within
        back = coming_back(places, given.pause, given.sittings)
        away = standardised(p["across"] @ (back @ vectors)) + given.recent_weight * standardised(p["recent"])
        return torch.where(self.has_paused(p, places), away, within)

    def portable(self, received: Params) -> Linear:
        """One term a scale, through the item vectors."""
        return by_scale(self, through_vectors(received["vectors"], received["next"]))

    def memory(self) -> Memory:
        """Items by rank for every scale."""
        return rank_memory(self)


def _ridge(before: Tensor, after: Tensor, regularization: float) -> Tensor:
    """[m, b] ((A + lambda d I)^-1 C^T)^T; d is 1 where no client has sent anything."""
    ridged = (before + before.T) / 2
    mean = ridged.diagonal().mean()
    ridged.diagonal().add_(torch.where(mean > 0, mean, 1.0) * regularization)
    return solution(ridged, after.T).T.contiguous()
