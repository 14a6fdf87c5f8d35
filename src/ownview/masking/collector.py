"""The server's half of a masked sum, one round long: it carries messages, and learns the sum and nothing else.

It follows the protocol. What it holds is public keys, sealed boxes until they are delivered, who sent what, and in the
end the seeds of clients whose numbers arrived and the keys of those whose did not. It adds masked numbers up as they
come (`federation.aggregation`) and takes off `masks_left` when shares have come.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ownview.base.errors import MessageError, TrainingError
from ownview.masking.device import MASKS, place_of
from ownview.masking.messages import Keys, Left, Neighbours, SealedShares, Shares
from ownview.masking.neighbours import Neighbourhood, ring
from ownview.masking.primitives import KeyPair, Words, stream
from ownview.masking.shamir import combined


class MaskingServer:
    """The server in one round; its steps come in order, each with what has arrived by then.

    Args:
        number: of the round.
        survivors: T: with fewer clients than this at any step nothing is released.
        reach: how far masks reach.
        seed: of the order in which clients stand on the ring.
    """

    def __init__(self, number: int, survivors: int, reach: Neighbourhood, seed: int) -> None:
        self.round, self.survivors, self.reach, self.seed = number, survivors, reach, seed
        self.keys: dict[int, Keys] = {}
        self.neighbours: dict[int, tuple[int, ...]] = {}
        self.shared: frozenset[int] = frozenset()
        self.arrived: set[int] = set()

    def introduce(self, keys: Sequence[Keys]) -> dict[int, Neighbours]:
        """Every client's keys -> whom each shares masks with."""
        self._require_enough(len(keys), "sent keys")
        self.keys = {one.client: one for one in keys}
        self.neighbours = ring(list(self.keys), self.reach.neighbours, self.seed)
        return {
            client: Neighbours(self.round, client, self.reach.threshold, tuple(self.keys[other] for other in others))
            for client, others in self.neighbours.items()
        }

    def deliver(self, sent: Sequence[SealedShares]) -> dict[int, SealedShares]:
        """Everybody's sealed shares -> what each gets from its neighbours."""
        self._require_enough(len(sent), "sent shares")
        boxes = {one.client: one.boxes for one in sent}
        self.shared = frozenset(boxes)
        for client, own in boxes.items():
            if set(own) != set(self.neighbours[client]):
                raise MessageError(f"client {client}: shares for others than its neighbours")
            self._require_neighbours(client, self.shared, "sent shares")
        return {
            client: SealedShares(self.round, client, {other: boxes[other][client] for other in self._of(client)})
            for client in boxes
        }

    def take(self, client: int) -> None:
        """Note that a client's masked numbers have arrived; they are added up elsewhere."""
        if client not in self.shared or client in self.arrived:
            raise MessageError(f"client {client}: masked numbers came twice, or without shares")
        self.arrived.add(client)

    def left(self) -> dict[int, Left]:
        """What is asked of every client whose numbers have arrived."""
        self._require_enough(len(self.arrived), "sent masked numbers")
        for client in self.shared:
            self._require_neighbours(client, self.arrived, "sent masked numbers")
        return {
            client: Left(self.round, client, {other: other in self.arrived for other in self._of(client)})
            for client in sorted(self.arrived)
        }

    def masks_left(self, shown: Sequence[Shares], count: int) -> Words:
        """[count] what masks are left in the sum of all masked numbers, to be taken off it."""
        self._require_enough(len(shown), "showed shares")
        for client in self.shared:
            self._require_neighbours(client, {one.client for one in shown}, "showed shares")
        total = np.zeros(count, dtype=np.uint32)
        for client in sorted(self.arrived):
            total += stream(self._secret(client, {one.client: one.seeds for one in shown}), count)
        for client in sorted(self.shared - self.arrived):
            key = KeyPair(self._secret(client, {one.client: one.keys for one in shown}))
            if key.public != self.keys[client].masking:
                raise MessageError(f"client {client}: shares that are not of its key")
            for other in (one for one in self._of(client) if one in self.arrived):
                mask = stream(key.agreed(self.keys[other].masking, MASKS), count)
                # It stands in the sum with the sign that the other gave it.
                (np.add if other < client else np.subtract)(total, mask, out=total)
        return total

    def _secret(self, client: int, shown: Mapping[int, Mapping[int, int]]) -> bytes:
        found = {
            place_of(other): shown[other][client]
            for other in self._of(client)
            if other in shown and client in shown[other]
        }
        if len(found) < self.reach.threshold:
            raise MessageError(f"client {client}: {len(found)} shares of one kind; expected {self.reach.threshold}")
        return combined(dict(list(found.items())[: self.reach.threshold]))

    def _of(self, client: int) -> list[int]:
        """The client's neighbours that have sent shares."""
        return [other for other in self.neighbours[client] if other in self.shared]

    def _require_enough(self, found: int, did: str) -> None:
        if found < self.survivors:
            raise TrainingError(
                f"round {self.round}: {found} clients {did}, and {self.survivors} are needed; nothing is released"
            )

    def _require_neighbours(self, client: int, there: Collection[int], did: str) -> None:
        found = sum(other in there for other in self._of(client))
        if found < self.reach.threshold:
            raise TrainingError(
                f"round {self.round}: {found} neighbours of a client {did}, and {self.reach.threshold} are needed to "
                "lift its masks; nothing is released"
            )
