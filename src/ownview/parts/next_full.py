"""FedNext in full: from items to items, one round."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.parts.next_settings import NextForm, column
from ownview.parts.places import Places, faded, latest, nearness, numbers_held, reach, weighed_rows
from ownview.parts.positive_definite import ease_weights, solution
from ownview.parts.transitions import across, future, past, standardised
from ownview.seam.client import Client, Patch, Reporting, Summand, Summands
from ownview.seam.initial import Constant
from ownview.seam.portable import Linear, Term
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived, Server, Sums
from ownview.seam.training import Batch, Context, Params


@dataclass(frozen=True)
class FullForm(NextForm):
    """B [Km, m] = (A + lambda D)^-1 C, A = sum_u w_u P_u^T P_u, C = sum_u w_u P_u^T F_u, D its scales' mean diagonals.

    Row t of P_u: the client's past before place t at K scales side by side; row t of F_u: what it had from there on.
    Across sittings likewise, with one past by sitting and the sitting after a pause. After a pause a client adds up its
    standardised scores: across, EASE^R, and recent popularity.
    """

    def client(self) -> Client:
        """The client's half; B serves predictions alone, so clients receive it after the round."""
        work = Reporting(self._sends(), self.report, receives_after=True, working=self._working)
        return Client(self._params(), work, self.scores, whole_rows=True)

    def _params(self) -> dict[str, Param]:
        """told: 1 once the client has sent. The server keeps sums to itself."""
        m, wide = self.world.num_items, len(self.given.scales) * self.world.num_items
        params = {"past": timeline(), "told": private(initial=Constant(0.0)), "next": received(wide, m)}
        params |= {"pasts": held(wide, wide), "follows": held(wide, m)}
        if self.clock:
            params |= {"across": received(m, m), "ease": received(m, m), "recent": received(m)}
            params |= {"before": held(m, m), "after": held(m, m), "pairs": held(m, m)}
        return params

    def _sends(self) -> dict[str, Summand]:
        m, wide = self.world.num_items, len(self.given.scales) * self.world.num_items
        sends = {
            "pasts": Summand((wide, wide), "pairs of its items in its pasts, once", symmetric=True),
            "follows": Summand((wide, m), "which of its items came after which, once"),
        }
        if self.clock:
            sends |= {
                "before": Summand((m, m), "pairs of its items before pauses, once", symmetric=True),
                "after": Summand((m, m), "which of its items came after a pause, once"),
                "pairs": Summand((m, m), "pairs of its items, once", symmetric=True),
                "recent": Summand((m,), "how recent its items are, once"),
            }
        return sends

    def _working(self, length: int) -> int:
        size, count, m = min(length, self.given.length), len(self.given.scales), self.world.num_items
        at_home = numbers_held(count * size, count * m, m) + 2 * numbers_held(size, m, m)
        return max(6 * (count * size) ** 2 + 12 * size**2, at_home) + length

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The client's cells of all sums, unless it has told them before."""
        given = self.given
        places, new = latest(p, "past", given.length), 1 - p["told"]
        size, mask = len(places.rows), places.mask
        scaled = torch.cat([past(size, tau, mask) for tau in given.scales], dim=1)
        rows = torch.cat([places.rows + k * self.world.num_items for k in range(len(given.scales))])
        here = mask.repeat(len(given.scales))
        weight = given.weight(places) * new
        sent: dict[str, Patch] = {
            "pasts": Patch(rows, rows, (scaled.T @ scaled) * here[:, None] * (here * weight)),
            "follows": Patch(
                rows, places.rows, (scaled.T @ future(size, given.horizon, mask)) * here[:, None] * (mask * weight)
            ),
        }
        if self.clock:
            parted = across(places, given.pause, given.sittings)
            sent |= {
                "before": Patch(places.rows, places.rows, parted.before.T @ parted.before * new),
                "after": Patch(places.rows, places.rows, parted.before.T @ parted.after * new),
                "pairs": Patch(places.rows, places.rows, nearness(places, torch.inf) * new),
                "recent": column(places, given.recently(p, places) * new),
            }
        return sent, {"told": torch.ones_like(p["told"])}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Add up, and solve in the run's precision; EASE^R in float64."""
        given = self.given
        new = {name: values[name] + sums[name] for name in sums if name != "pairs"}
        # Solved by column; scores read rows, which must then lie in one piece.
        new["next"] = _ridge(new["pasts"], new["follows"], len(given.scales), given.regularization).contiguous()
        if self.clock:
            new["pairs"] = values["pairs"] + sums["pairs"]
            new["across"] = _ridge(new["before"], new["after"], 1, given.across_regularization).contiguous()
            new["ease"] = ease_weights(new["pairs"], given.ease_regularization)
        return new

    def scores(self, p: Params) -> Tensor:
        """[m] within a sitting by the pasts; after a pause by what lies across it."""
        given, m = self.given, self.world.num_items
        places = latest(p, "past", given.length)
        lately = [Places(*(part[-reach(tau) :] for part in places)) for tau in given.scales]
        weights = torch.cat([faded(one, tau) for one, tau in zip(lately, given.scales, strict=True)])
        within = weighed_rows(weights, torch.cat([one.rows + k * m for k, one in enumerate(lately)]), p["next"])
        if not self.clock:
            return within
        parted = across(places, given.pause, given.sittings).now
        away = standardised(weighed_rows(parted, places.rows, p["across"]))
        away = away + standardised(weighed_rows(places.mask, places.rows, p["ease"]))
        away = away + given.recent_weight * standardised(p["recent"])
        return torch.where(given.has_paused(p, places), away, within)

    def portable(self, received: Params) -> Linear:
        """One term a scale."""
        parts = torch.split(received["next"], self.world.num_items)
        terms = (Term(part, tau, self.given.length) for part, tau in zip(parts, self.given.scales, strict=True))
        return Linear(tuple(terms), left_out=self.left_out)

    def server(self) -> Server:
        """Solving holds the sums with their ridge and the factor."""
        m, count = self.world.num_items, len(self.given.scales)
        advice = "raise --memory, take fewer scales, or give a rank: the full form is items by items for two scales"
        return Server(
            Sums(self.combine, working=(2 * count**2 + count + (8 if self.clock else 0)) * m**2, advice=advice)
        )


def _ridge(before: Tensor, after: Tensor, scales: int, regularization: float) -> Tensor:
    """(A + lambda D)^-1 C; D is 1 where nobody has sent anything. Halves are averaged: noise is not symmetric."""
    ridged = (before + before.T) / 2
    means = ridged.diagonal().reshape(scales, -1).mean(1)
    ridge = torch.where(means > 0, means, 1.0) * regularization
    ridged.diagonal().add_(ridge.repeat_interleave(len(before) // scales))
    return solution(ridged, after)
