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

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.sequences import prefixes
from ownview.parts.sequences.sequence import SequenceSettings, require_order
from ownview.parts.sequences.transformer import lesson
from ownview.parts.server_adam import adam_moved, moments
from ownview.parts.shortened import largest_rows, rounded, whole_table
from ownview.seam.client import Client, Patch, Sent, Summand, Summands
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

    A client with k targets (items that come after others, or as many of them as a round draws) sends k and
    g = d/dx sum of its k losses; the server moves x by Adam on (sum of all g) / (sum of all k): the gradient of the
    mean loss over the targets of a batch of these clients' sequences. With several local steps x_0, x_1, ..., x_s on
    its own mean loss at rate r a client sends k (x_0 - x_s) / r instead, which is g where there is one step.
    """

    name: ClassVar[str] = "fedsasrec"
    title: ClassVar[str] = "FedSASRec"
    summary: ClassVar[str] = "a causal transformer over a client's own items, from summed gradients"
    paper: ClassVar[str] = "Kang and McAuley, ICDM 2018 (the model); sums over clients here"

    local_steps: int = setting(1, "steps of a client in a round", low=1, high=100, search=OneOf((1, 2, 4, 8)))
    local_rate: float = setting(
        1.0, "rate of a client's steps; one alone does not depend on it", above=0, search=Between(0.1, 10.0, log=True)
    )
    sent_rows: int = setting(
        0, "rows of the item table's gradient that a client sends, the largest; 0 for all", low=0,
        search=OneOf((0, 64, 256, 1024)),
    )  # fmt: skip
    sent_bits: int = setting(32, "bits of a number that a client sends, 8 or 32", low=8, search=OneOf((8, 32)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sent_bits not in (8, 32):
            nearest = 8 if self.sent_bits < 20 else 32
            raise SettingError(f"FedSASRec setting sent_bits={self.sent_bits}: expected 8 or 32, such as {nearest}")

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
        return found

    def memory(self, world: World) -> Memory:
        """The forward and backward pass and two gradients at one client; Adam's temporaries at the server."""
        learnt = sum(torch.Size(one.shape).numel() for one in self.sends(world).values())
        candidates = self.negatives or world.num_items

        def needed(length: int) -> int:
            return prefixes.working(self.network, candidates, length, self.drawn) + 2 * learnt

        whole = self.network.working(candidates) + 2 * learnt
        return Memory(needed if self.prefixes else whole, server=4 * learnt)

    def client(self, world: World) -> Client:
        """Only where items have an order."""
        require_order(self.name, world.order)
        return super().client(world)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The summed gradient, or the scaled change of several steps; 0 for a client with fewer than two items."""
        start = {name: value for name, value in p.items() if name in self.network.names}

        def slope(here: Params, step: int) -> tuple[Params, Tensor]:
            found: tuple[Params, Tensor] = torch.func.grad(lambda x: self._loss(x, p, step), has_aux=True)(here)
            return found

        sent, positions = slope(start, 0)
        for step in range(1, self.local_steps):
            rate = self.local_rate / positions.clamp(min=1)
            further, _ = slope({name: start[name] - rate * sent[name] for name in start}, step)
            sent = {name: sent[name] + further[name] for name in start}
        return {"positions": positions, **self._shortened(sent, p["luck"])}, {}

    def _shortened(self, sent: Params, luck: Tensor) -> Summands:
        """The gradients, by the names under which they are sent: all of them, or what the settings leave of them."""
        found: dict[str, Sent] = {}
        for name, one in sent.items():
            part: Sent = one
            if name == "items" and self.sent_rows > 0:
                part = largest_rows(one, self.sent_rows)
            if self.sent_bits == 8 and one.dim() == 2:
                part = rounded(
                    part if isinstance(part, Patch) else whole_table(one), luck, self.network.names.index(name)
                )
            found[_GRADIENT + name] = part
        return found

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
        return adam_moved(values, gradient, self.learning_rate)

    def scores(self, p: Params) -> Tensor:
        """[m] h . e_i after the latest item that is known."""
        return self.network.scores(p, p["line.rows"], p["line.mask"])

    def portable(self, received: Params, world: World) -> Portable:
        """The network."""
        return Attention(self.network, {name: received[name] for name in self.network.names})
