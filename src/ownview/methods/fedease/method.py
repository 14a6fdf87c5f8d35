"""FedEASE as a method: its name, the form that fits the data, what it needs of memory, and its portable form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.methods.fedease.algorithm import SummedPairs
from ownview.parts.pairs.pairs_again import PairsAgain
from ownview.parts.pairs.positive_definite import MOST_IN_DOUBLE
from ownview.parts.pairs.private_pairs import RELEASES, PrivatePairs
from ownview.parts.pairs.takers import require_counted
from ownview.parts.sequences.places import numbers_held, reach
from ownview.parts.text.text_beside import loudness
from ownview.seam.client import Client, Reporting
from ownview.seam.memory import Memory
from ownview.seam.portable import Linear, Portable, Term
from ownview.seam.server import Server
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class FedEASE(SummedPairs):
    """EASE^R of summed pairs (`SummedPairs` has the formula); timeless on data without order.

    Under an accounted budget its clients and server are those of `PrivatePairs`: two rounds.
    """

    name: ClassVar[str] = "fedease"
    title: ClassVar[str] = "FedEASE"
    summary: ClassVar[str] = "EASE^R from summed pairs, near ones and late items first: exact, in one round"
    paper: ClassVar[str] = "Steck, WWW 2019 (the model); sums over clients and time here"
    enough: ClassVar[int | None] = 1
    releases: ClassVar[tuple[float, ...]] = RELEASES

    def client(self, world: World) -> Client:
        """The client's half, without time where the data has none."""
        private, timeless = self._private(world), self._fitted(world)
        if private is not None:
            return self.client_with_text(private.client(), world)
        return self.client_with_text(super().client(world), world) if timeless == self else timeless.client(world)

    def server(self, world: World) -> Server:
        """The server's half."""
        private = self._private(world)
        server = self._summing(world) if private is None else private.server()
        return self.server_with_text(server, lambda values: loudness(values["weights"]), "weights")

    def _summing(self, world: World) -> Server:
        sums = self.memory(world).sums(self.combine)
        return Server(replace(sums, again=PairsAgain(self.regularization, self.takers)))

    def portable(self, received: Params, world: World) -> Portable:
        """One term, equal to a client's scores."""
        private, fades = self._private(world), self._fitted(world).recency
        form = Linear((Term(received["weights"], fades, regularization=self.regularization),))
        return self.portable_with_text(form if private is None else private.portable(received), received, world)

    def notes(self, world: World) -> tuple[str, ...]:
        """Time is left out where the data has none; under a budget, so are most items."""
        private = self._private(world)
        if private is not None:
            return (f"fedease under a budget: the {private.kept} most popular of {world.num_items} items count",)
        if self._fitted(world) == self:
            return ()
        return (
            f"fedease: the data has no order in time; nearness={self.nearness:g} and recency={self.recency:g} are "
            "taken as infinite, which is EASE^R",
        )

    def reporting(self, world: World) -> Reporting:
        """Clients receive B after the round: it serves predictions alone."""
        return replace(super().reporting(world), receives_after=True)

    def memory(self, world: World) -> Memory:
        """Solving holds one more matrix of the items it is solved for, in float64 where they are not too many."""
        m = world.num_items

        def client(length: int) -> int:
            return max(8 * length**2, numbers_held(min(length, reach(self.recency)), m, m))

        advice = "raise --memory, or take data with fewer items: the Gram matrix is items by items"
        return Memory(client, 2 * min(m, MOST_IN_DOUBLE) ** 2, advice, in_place=True)

    def _fitted(self, world: World) -> FedEASE:
        """The same with both spans infinite where the data has no order."""
        return replace(self, nearness=math.inf, recency=math.inf) if world.order == "none" else self

    def _private(self, world: World) -> PrivatePairs | None:
        if world.protection is None:
            return None
        require_counted(self.title, self.takers, "under a budget few people are as good as none in the noise")
        fitted, text = self._fitted(world), self.text > 0
        spans = fitted.nearness, fitted.recency
        return PrivatePairs(world, world.protection, self.regularization, *spans, beside_text=text)
