"""FedSASRec: a causal transformer from summed gradients; a cohort is a batch of the central model.

Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018 (the model); Klenitskiy and Vasilev, RecSys 2023
(the loss over all items). Server and clients as in McMahan et al., AISTATS 2017, with Adam on the server (Reddi et al.,
ICLR 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.sequences.sequence import SequenceSettings, require_order
from ownview.parts.sequences.transformer import lesson
from ownview.parts.server_adam import adam_moved, moments
from ownview.seam.client import Client, Summand, Summands
from ownview.seam.memory import Memory
from ownview.seam.method import ReportingMethod
from ownview.seam.portable import Attention, Portable
from ownview.seam.roles import RECEIVED, Param, chance, timeline
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World

_GRADIENT = "gradient."


@dataclass(frozen=True)
class FedSASRec(SequenceSettings, ReportingMethod):
    """score = h . e_i, h the output of a causal transformer over the client's items in time order.

    A client with k positions (items that come after others) sends k and g = d/dx sum of its k losses; the server moves
    x by Adam on (sum of all g) / (sum of all k): the gradient of the mean loss over the positions of a batch of these
    clients' sequences. With several local steps x_0, x_1, ..., x_s on its own mean loss at rate r a client sends
    k (x_0 - x_s) / r instead, which is g where there is one step.
    """

    name: ClassVar[str] = "fedsasrec"
    title: ClassVar[str] = "FedSASRec"
    summary: ClassVar[str] = "a causal transformer over a client's own items, from summed gradients"
    paper: ClassVar[str] = "Kang and McAuley, ICDM 2018 (the model); sums over clients here"

    local_steps: int = setting(1, "steps of a client in a round", low=1, high=100, search=OneOf((1, 2, 4, 8)))
    local_rate: float = setting(
        1.0, "rate of a client's steps; one alone does not depend on it", above=0, search=Between(0.1, 10.0, log=True)
    )

    def params(self, world: World) -> dict[str, Param]:
        """Every client receives the network; Adam's moments stay on the server."""
        network = self.network.params(world.num_items, RECEIVED)
        return {"line": timeline(), "luck": chance(), **network, **moments(network)}

    def sends(self, world: World) -> dict[str, Summand]:
        """Gradients of everything that is learnt, and of how many positions."""
        found = {"positions": Summand((), "number of its items that come after others")}
        for name, param in self.network.params(world.num_items, RECEIVED).items():
            found[_GRADIENT + name] = Summand(param.shape, f"gradient of {name}")
        return found

    def memory(self, world: World) -> Memory:
        """The forward and backward pass and two gradients at one client; Adam's temporaries at the server."""
        learnt = sum(torch.Size(one.shape).numel() for one in self.sends(world).values())
        return Memory(self.network.working(self.negatives or world.num_items) + 2 * learnt, server=4 * learnt)

    def client(self, world: World) -> Client:
        """Only where items have an order."""
        require_order(self.name, world.order)
        return super().client(world)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The summed gradient, or the scaled change of several steps; 0 for a client with fewer than two items."""
        network = self.network
        taught = lesson(p["line.rows"], p["line.mask"], self.length)
        positions = taught.real.sum()
        start = {name: value for name, value in p.items() if name in network.names}

        def slope(here: Params, step: int) -> Params:
            loss = torch.func.grad(lambda x: network.loss(x, taught, p["luck"], self.negatives, step))
            gradient: Params = loss(here)
            return gradient

        sent = slope(start, 0)
        for step in range(1, self.local_steps):
            rate = self.local_rate / positions.clamp(min=1)
            further = slope({name: start[name] - rate * sent[name] for name in start}, step)
            sent = {name: sent[name] + further[name] for name in start}
        return {"positions": positions, **{_GRADIENT + name: one for name, one in sent.items()}}, {}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """One step of Adam; none where no client had a position."""
        positions = sums["positions"]
        if not bool(positions > 0):
            return {}
        gradient = {name: sums[_GRADIENT + name] / positions for name in self.network.names}
        return adam_moved(values, gradient, self.learning_rate)

    def scores(self, p: Params) -> Tensor:
        """[m] h . e_i after the latest item that is known."""
        return self.network.scores(p, p["line.rows"], p["line.mask"])

    def portable(self, received: Params, world: World) -> Portable:
        """The network."""
        return Attention(self.network, {name: received[name] for name in self.network.names})
