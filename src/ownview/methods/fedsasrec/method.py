"""FedSASRec as a method: its name, the data that it needs, its memory, and its portable form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ownview.methods.fedsasrec.algorithm import SummedGradients
from ownview.parts.sequences import prefixes
from ownview.parts.sequences.sequence import require_order
from ownview.seam.client import Client
from ownview.seam.memory import Memory
from ownview.seam.portable import Attention, Portable
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class FedSASRec(SummedGradients):
    """A transformer over each client's items, from summed gradients; `SummedGradients` has the formula."""

    name: ClassVar[str] = "fedsasrec"
    title: ClassVar[str] = "FedSASRec"
    summary: ClassVar[str] = "a causal transformer over a client's own items, from summed gradients"
    paper: ClassVar[str] = "Kang and McAuley, ICDM 2018 (the model); sums over clients here"

    def client(self, world: World) -> Client:
        """Only where items have an order."""
        require_order(self.name, world.order)
        return super().client(world)

    def memory(self, world: World) -> Memory:
        """The forward and backward pass and two gradients at one client; Adam's temporaries at the server.

        With a temperature a client also holds gradients of the items' directions and of what they are computed from.
        """
        learnt = sum(torch.Size(one.shape).numel() for one in self.sends(world).values())
        candidates = self.negatives or world.num_items
        slopes = 2 * learnt + (2 * world.num_items * self.embedding_size if self.temperature > 0 else 0)

        def needed(length: int) -> int:
            return prefixes.working(self.network, candidates, length, self.drawn) + slopes

        whole = self.network.working(candidates) + slopes
        return Memory(needed if self.prefixes else whole, server=4 * learnt)

    def portable(self, received: Params, world: World) -> Portable:
        """The network."""
        return Attention(self.network, {name: received[name] for name in self.network.names})
