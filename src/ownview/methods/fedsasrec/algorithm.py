"""FedSASRec's algorithm: a causal transformer from summed gradients; a cohort is a batch of the central model.

Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018 (the model); Klenitskiy and Vasilev, RecSys 2023
(the loss over all items). Server and clients as in McMahan et al., AISTATS 2017, with Adam on the server (Reddi et al.,
ICLR 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.methods.fedsasrec.settings import GradientSettings
from ownview.methods.fedsasrec.short_gradients import shortened
from ownview.parts.sequences import prefixes
from ownview.parts.sequences.slopes import slopes, turned
from ownview.parts.sequences.transformer import lesson
from ownview.parts.server_adam import adam_moved, moments
from ownview.seam.client import Sent, Summand, Summands
from ownview.seam.method import ReportingMethod
from ownview.seam.roles import RECEIVED, Param, chance, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World

_GRADIENT = "gradient."
_ALONG = "along"


@dataclass(frozen=True)
class SummedGradients(GradientSettings, ReportingMethod):
    """score = h . e_i, h the output of a causal transformer over the client's items in time order.

    A client with k targets (items that come after others, or as many of them as a round draws) sends k and
    g = d/dx sum of its k losses; the server moves x by Adam on (sum of all g) / (sum of all k): the gradient of the
    mean loss over the targets of a batch of these clients' sequences. With several local steps x_0, x_1, ..., x_s on
    its own mean loss at rate r a client sends k (x_0 - x_s) / r instead, which is g where there is one step.

    g itself over all items is made in factors, of which sums over clients are cheaper (`parts.sequences.slopes`).
    """

    def params(self, world: World) -> dict[str, Param]:
        """Every client receives the network; Adam's moments stay on the server."""
        network = self.network.params(world.num_items, RECEIVED)
        return {"line": timeline(), "luck": chance(), **network, **moments(network)}

    def sends(self, world: World) -> dict[str, Summand]:
        """Gradients of everything that is learnt, and of how many positions."""
        found = {"positions": Summand((), "number of its items that are learnt from")}
        for name, param in self.network.params(world.num_items, RECEIVED).items():
            coarse = self.sent_bits == 8 and len(param.shape) == 2
            found[_GRADIENT + name] = Summand(param.shape, f"gradient of {name}", coarse=coarse)
        if self.in_factors and self.temperature > 0:
            found[_ALONG] = Summand((world.num_items,), "how much of that of items would only make them longer")
        return found

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The summed gradient, or the scaled change of several steps; 0 for a client with fewer than two items."""
        if self.in_factors:
            found = slopes(self.network, p, p["line.rows"], p["line.mask"], p["luck"])
            sent: dict[str, Sent] = {_GRADIENT + name: one for name, one in found.others.items()}
            sent |= {"positions": found.positions, _GRADIENT + "items": found.items}
            return sent | ({_ALONG: found.along} if self.temperature > 0 else {}), {}
        start = {name: value for name, value in p.items() if name in self.network.names}

        def slope(here: Params, step: int) -> tuple[Params, Tensor]:
            found: tuple[Params, Tensor] = torch.func.grad(lambda x: self._loss(x, p, step), has_aux=True)(here)
            return found

        summed, positions = slope(start, 0)
        for step in range(1, self.local_steps):
            rate = self.local_rate / positions.clamp(min=1)
            further, _ = slope({name: start[name] - rate * summed[name] for name in start}, step)
            summed = {name: summed[name] + further[name] for name in start}
        place = self.network.names.index
        short = {_GRADIENT + name: shortened(one, name, place(name), p["luck"], self) for name, one in summed.items()}
        return {"positions": positions, **short}, {}

    def _loss(self, x: Params, p: Params, step: int) -> tuple[Tensor, Tensor]:
        """[] the sum of the client's losses with the network's values x, and [] how many they are."""
        network, rows, mask, luck = self.network, p["line.rows"], p["line.mask"], p["luck"]
        if self.prefixes:
            taught = prefixes.prefixes(network, rows, mask, luck, self.drawn, step)
            return prefixes.loss(network, x, taught, luck, self.negatives, step), taught.real.sum()
        whole = lesson(rows, mask, self.length)
        return network.loss(x, whole, luck, self.negatives, step), whole.real.sum()

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """One step of Adam; none where no client had a position."""
        positions = sums["positions"]
        if not bool(positions > 0):
            return {}
        gradient = {name: sums[_GRADIENT + name] / positions for name in self.network.names}
        if _ALONG in sums:
            gradient["items"] = turned(gradient["items"], sums[_ALONG] / positions, values["items"])
        return adam_moved(values, gradient, self.rate(int(values["steps"]) + 1))

    def scores(self, p: Params) -> Tensor:
        """[m] h . e_i after the latest item that is known."""
        return self.network.scores(p, p["line.rows"], p["line.mask"])
