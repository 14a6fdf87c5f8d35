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
        """The forward and backward pass at one client; Adam's temporaries at the server.

        Scores of all items at all places three times over, and gradients in factors where these are fewer numbers; else
        two of everything that is learnt, and with a temperature two more of the items'.
        """
        learnt = sum(torch.Size(one.shape).numel() for one in self.sends(world).values())
        table, candidates = world.num_items * self.embedding_size, self.negatives or world.num_items

        def needed(length: int) -> int:
            if self.in_factors:
                width = min(length, self.length + 1)
                times = self.network.passes
                factors = min(2 * times * width * (world.num_items + self.embedding_size), 2 * table)
                inside = times * self.network.inside(width)
                scores = self.network.score_matrices * width * candidates
                return scores + factors + inside + min(2 * (learnt - table), inside)
            written = 2 * learnt + (2 * table if self.temperature > 0 else 0)
            if self.prefixes:
                return prefixes.working(self.network, candidates, length, self.drawn) + written
            return self.network.working(candidates) + written

        return Memory(needed, server=4 * learnt)

    def portable(self, received: Params, world: World) -> Portable:
        """The network."""
        return Attention(self.network, {name: received[name] for name in self.network.names})
