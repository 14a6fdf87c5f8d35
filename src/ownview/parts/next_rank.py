"""FedNext by rank: from item vectors to items, never items by items."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.parts.next_settings import NextForm, column
from ownview.parts.places import Places, faded, latest, nearness
from ownview.parts.positive_definite import solution
from ownview.parts.transitions import across, future, past, standardised
from ownview.seam.client import Client, Patch, Product, Reporting, Sent, Summand, Summands
from ownview.seam.initial import Constant, Normal
from ownview.seam.portable import Linear, LowRank, Term
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived, Server, Sums
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

    def client(self) -> Client:
        """The client's half."""
        return Client(
            self._params(), Reporting(self._sends(), self.report, working=self._working), self.scores, whole_rows=True
        )

    def _params(self) -> dict[str, Param]:
        """told: 1 once the client has sent its transitions. The server keeps sums to itself."""
        m, k = self.world.num_items, self.given.rank
        wide = len(self.given.scales) * k
        params = {"past": timeline(), "told": private(initial=Constant(0.0))}
        params |= {"vectors": received(m, k, initial=Normal(1.0)), "next": received(m, wide)}
        params |= {"pasts": held(wide, wide), "follows": held(m, wide)}
        if self.clock:
            params |= {"across": received(m, k), "recent": received(m), "before": held(k, k), "after": held(m, k)}
        return params

    def _sends(self) -> dict[str, Summand]:
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

    def _working(self, length: int) -> int:
        size, wide = min(length, self.given.length), len(self.given.scales) * self.given.rank
        return 4 * size * (2 * wide + self.given.rank + size) + 4 * self.world.num_items + 4 * wide + length

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """While vectors are found, what lies near each item; then the client's transitions, unless told before."""
        places = latest(p, "past", self.given.length)
        vectors = p["vectors"][places.rows] * places.mask[:, None]
        sent = self._nothing(vectors)
        if context.round <= self.given.iterations:
            spread = nearness(places, self.given.nearness) @ vectors
            return sent | {"counts": column(places, places.mask), "spread": _rows(places, spread)}, {}
        new = 1 - p["told"]
        sent |= self._transitions(places, vectors, self.given.weight(places) * new)
        if self.clock:
            parted = across(places, self.given.pause, self.given.sittings)
            before = parted.before @ vectors
            sent |= {
                "before": Product(before * new, before),
                "after": _rows(places, parted.after.T @ before * new),
                "recent": column(places, self.given.recently(p, places) * new),
            }
        return sent, {"told": torch.ones_like(p["told"])}

    def _transitions(self, places: Places, vectors: Tensor, weight: Tensor) -> dict[str, Sent]:
        size = len(places.rows)
        # Row t is about place t, which must hold an item: before the first there is no past, and padding is no item.
        pasts = torch.cat([past(size, tau, weight) @ vectors for tau in self.given.scales], dim=1)
        follows = (future(size, self.given.horizon, weight).T @ pasts) * places.mask[:, None]
        return {"pasts": Product(pasts * weight, pasts), "follows": _rows(places, follows * weight)}

    def _nothing(self, like: Tensor) -> dict[str, Sent]:
        """Every summand of a client that has nothing to send."""
        none = torch.zeros(0, dtype=torch.long, device=like.device)
        empty: dict[str, Sent] = {}
        for name, one in self._sends().items():
            factor = like.new_zeros(0, one.shape[-1])
            empty[name] = Product(factor, factor) if one.symmetric else Patch(none, none, like.new_zeros(0, 0))
        return empty

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Better item vectors, or, once they are found, what follows from the sums."""
        if arrived.round <= self.given.iterations:
            return {"vectors": self._vectors(sums, last=arrived.round == self.given.iterations)}
        new = {name: values[name] + sums[name] for name in sums if name not in ("counts", "spread")}
        new["next"] = _ridge(new["pasts"], new["follows"], self.given.regularization)
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
        parted = across(places, given.pause, given.sittings).now
        away = standardised(p["across"] @ (parted @ vectors)) + given.recent_weight * standardised(p["recent"])
        return torch.where(given.has_paused(p, places), away, within)

    def portable(self, received: Params) -> Linear:
        """One term a scale, through the item vectors."""
        given, parts = self.given, torch.split(received["next"], self.given.rank, dim=1)
        terms = (
            Term(LowRank(received["vectors"], part.T), tau, given.length)
            for part, tau in zip(parts, given.scales, strict=True)
        )
        return Linear(tuple(terms), left_out=self.left_out)

    def server(self) -> Server:
        """Solving holds the sums once more, transposed."""
        wide = len(self.given.scales) * self.given.rank
        advice = "raise --memory, or take a lower rank or fewer scales"
        return Server(Sums(self.combine, working=2 * wide * (self.world.num_items + wide), advice=advice))


def _rows(places: Places, values: Tensor) -> Patch:
    """Whole rows [l, b] of the client's items."""
    return Patch(places.rows, places.rows.new_zeros(0), values)


def _ridge(before: Tensor, after: Tensor, regularization: float) -> Tensor:
    """[m, b] ((A + lambda d I)^-1 C^T)^T; d is 1 where nobody has sent anything."""
    ridged = (before + before.T) / 2
    mean = ridged.diagonal().mean()
    ridged.diagonal().add_(torch.where(mean > 0, mean, 1.0) * regularization)
    return solution(ridged, after.T).T.contiguous()
