"""FedNext in full: from items to items, one round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.methods.fednext.form import NextForm
from ownview.methods.fednext.honest_summands import NextHistory
from ownview.methods.fednext.memory import full_memory
from ownview.methods.fednext.portable import by_scale
from ownview.parts.pairs.positive_definite import ease_weights, solution, symmetrised
from ownview.parts.pairs.takers import limited
from ownview.parts.sequences.places import Places, column, faded, latest, reach, weighed_rows
from ownview.parts.sequences.transitions import across, coming_back, future, past, standardised
from ownview.seam.client import Nearby, Patch, Summand, Summands
from ownview.seam.honest_summands import Together
from ownview.seam.initial import Constant
from ownview.seam.memory import Memory
from ownview.seam.portable import Linear
from ownview.seam.roles import Param, held, private, received, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params


@dataclass(frozen=True)
class FullForm(NextForm):
    """B [Km, m] = (A + lambda D)^-1 C, A = sum_u w_u P_u^T P_u, C = sum_u w_u P_u^T F_u, D its scales' mean diagonals.

    Row t of P_u: the client's past before place t at K scales side by side; row t of F_u: what it had from there on.
    Across sittings likewise, with one past by sitting and the sitting after a pause. After a pause a client adds up its
    standardised scores: across, EASE^R, and recent popularity.
    """

    receives_after: ClassVar[bool] = True

    def params(self) -> dict[str, Param]:
        """Private `told`: 1 once the client has sent. The server keeps the sums."""
        m, wide = self.world.num_items, len(self.given.scales) * self.world.num_items
        params = {"past": timeline(), "told": private(initial=Constant(0.0)), "next": received(wide, m)}
        params |= {"pasts": held(wide, wide), "follows": held(wide, m)}
        if self.clock:
            params |= {"across": received(m, m), "ease": received(m, m), "recent": received(m)}
            params |= {"before": held(m, m), "after": held(m, m), "pairs": held(m, m)}
        return params

    def sends(self) -> dict[str, Summand]:
        """Cells of its own items in every sum."""
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

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The client's cells of all sums, or 0 if it has sent them before."""
        given = self.given
        places, new = latest(p, "past", given.length), 1 - p["told"]
        size, mask = len(places.rows), places.mask
        scaled = torch.cat([past(size, tau, mask) for tau in given.scales], dim=1)
        rows = torch.cat([places.rows + k * self.world.num_items for k in range(len(given.scales))])
        here = mask.repeat(len(given.scales))
        weight = self.weight(places) * new
        # Products are the same for all clients of a block, which weigh them afterwards, in one copy.
        together, next_to = scaled.T @ scaled, scaled.T @ future(size, given.horizon, mask)
        sent: dict[str, Patch | Nearby] = {
            "pasts": Patch(rows, rows, (together * here[:, None]).mul_(here * weight)),
            "follows": Patch(rows, places.rows, (next_to * here[:, None]).mul_(mask * weight)),
        }
        if self.clock:
            parted = across(places, given.pause, given.sittings)
            sent |= {
                "before": Patch(places.rows, places.rows, parted.before.T @ parted.before * new),
                "after": Patch(places.rows, places.rows, parted.before.T @ parted.after * new),
                "pairs": Nearby(places.rows, places.mask * new, mask.new_full((), torch.inf)),
                "recent": column(places, self.recently(p, places) * new),
            }
        return sent, {"told": torch.ones_like(p["told"])}

    def together(self) -> Together:
        """The sums must all follow from one history."""
        return NextHistory(self.given, self.world.num_items, self.clock)

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Add up, and solve in the run's precision; EASE^R in float64."""
        given = self.given
        new = {name: values[name] + sums[name] for name in sums if name != "pairs"}
        # Solved by column; scores read rows, which must then lie in one piece.
        new["next"] = _ridge(new["pasts"], new["follows"], len(given.scales), given.ridge).contiguous()
        if self.clock:
            new["pairs"] = values["pairs"] + sums["pairs"]
            new["across"] = _ridge(new["before"], new["after"], 1, given.across_regularization).contiguous()
            new["ease"] = ease_weights(new["pairs"], given.ease_regularization)
            counts = new["pairs"].diagonal()
            for name in ("next", "across", "ease"):
                limited(new[name], counts, given.takers)
            if given.takers:  # one person is 1 recent at most
                new["recent"] = torch.minimum(new["recent"], counts)
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
        back = coming_back(places, given.pause, given.sittings)
        away = standardised(weighed_rows(back, places.rows, p["across"]))
        away = away + standardised(weighed_rows(places.mask, places.rows, p["ease"]))
        away = away + given.recent_weight * standardised(p["recent"])
        return torch.where(self.has_paused(p, places), away, within)

    def portable(self, received: Params) -> Linear:
        """One term a scale."""
        return by_scale(self, torch.split(received["next"], self.world.num_items))

    def memory(self) -> Memory:
        """Items by items for every two scales."""
        return full_memory(self)


def _ridge(before: Tensor, after: Tensor, scales: int, regularization: float) -> Tensor:
    """(A + lambda D)^-1 C; D is 1 where no client has sent anything. Halves are averaged: noise is not symmetric."""
    ridged = symmetrised(before.clone())
    means = ridged.diagonal().reshape(scales, -1).mean(1)
    ridge = torch.where(means > 0, means, 1.0) * regularization
    ridged.diagonal().add_(ridge.repeat_interleave(len(before) // scales))
    return solution(ridged, after)
