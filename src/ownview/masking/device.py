"""The client's half of a masked sum, one round long: keys, shares, masks, and what is shown of others in the end.

A client u adds to its numbers, modulo 2^32, a stream of its own seed b_u, and for every neighbour v a stream of what
the two agreed on, with opposite signs:

    y_u = x_u + S(b_u) + sum_{v: u < v} S(s_uv) - sum_{v: v < u} S(s_uv)

Neighbours hold shares of b_u and of the key that its s_uv follow from. In the end each shows, of a client whose numbers
arrived, the share of b_u, and of one that dropped out the share of the key; never both, so that nobody can lift all
masks of one client (Bonawitz et al. 2017).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from ownview.base.errors import MessageError, TrainingError
from ownview.masking.messages import Keys, Left, Neighbours, SealedShares, Shares
from ownview.masking.primitives import SECRET, Entropy, KeyPair, Words, opened, sealed, stream
from ownview.masking.shamir import SHARE, shares

MASKS = b"ownview masks"
_SHARES = b"ownview shares"


class MaskingClient:
    """One client in one round; its steps come in order and once each.

    Args:
        client: its number, which everybody knows it by.
        number: of the round.
        entropy: of keys, seed and shares; `secrets.token_bytes` on a device.
    """

    def __init__(self, client: int, number: int, entropy: Entropy) -> None:
        self.client, self.round, self._entropy = client, number, entropy
        self._sealing, self._masking = KeyPair(entropy(SECRET)), KeyPair(entropy(SECRET))
        self._seed = entropy(SECRET)
        self._neighbours: dict[int, Keys] = {}
        self._threshold = 0
        self._boxes: dict[int, bytes] = {}
        self._held: dict[int, tuple[int, int]] = {}
        self._shown = False

    def keys(self) -> Keys:
        """First step: the client's public keys."""
        return Keys(self.round, self.client, self._sealing.public, self._masking.public)

    def shares(self, told: Neighbours) -> SealedShares:
        """Second step: shares of its secrets, one for every neighbour, which only that one can open."""
        self._require(told.round, told.client)
        if self._boxes:  # what is sealed twice under one key and number is sealed no more
            raise MessageError(f"client {self.client}: asked twice for shares of its secrets")
        self._neighbours, self._threshold = {one.client: one for one in told.keys}, told.threshold
        if self._threshold > len(self._neighbours):
            raise TrainingError(
                f"client {self.client}: {len(self._neighbours)} neighbours, {self._threshold} of which are to lift "
                "masks together; nothing is sent"
            )
        places = [place_of(other) for other in self._neighbours]
        of_seed = shares(self._seed, places, self._threshold, self._entropy)
        of_key = shares(self._masking.private, places, self._threshold, self._entropy)
        boxes = {}
        for other, seed, key in zip(self._neighbours, of_seed, of_key, strict=True):
            self._boxes[other] = self._sealing.agreed(self._neighbours[other].sealing, _SHARES)
            content = seed.to_bytes(SHARE, "big") + key.to_bytes(SHARE, "big")
            way, about = _addressed(self.round, self.client, other)
            boxes[other] = sealed(self._boxes[other], way, content, about)
        return SealedShares(self.round, self.client, boxes)

    def masks(self, inbox: SealedShares, count: int) -> Words:
        """Third step: [count] all masks together, to be added to the client's numbers.

        Only neighbours that have sent shares count: the masks of all others could not be lifted.
        """
        self._require(inbox.round, inbox.client)
        if self._held or not self._boxes:
            raise MessageError(f"client {self.client}: shares came twice, or before there were neighbours")
        if len(inbox.boxes) < self._threshold:
            raise TrainingError(
                f"client {self.client}: {len(inbox.boxes)} neighbours are left and {self._threshold} are needed; "
                "nothing is sent"
            )
        total = stream(self._seed, count).copy()
        for other, box in inbox.boxes.items():
            if other not in self._boxes:
                raise MessageError(f"client {self.client}: shares of {other}, which is no neighbour")
            way, about = _addressed(self.round, other, self.client)
            content = opened(self._boxes[other], way, box, about)
            seed, key = (int.from_bytes(part, "big") for part in (content[:SHARE], content[SHARE:]))
            self._held[other] = seed, key
            mask = stream(self._masking.agreed(self._neighbours[other].masking, MASKS), count)
            (np.add if self.client < other else np.subtract)(total, mask, out=total)
        return total

    def show(self, left: Left) -> Shares:
        """Fourth step: what lifts masks; refused where too few neighbours are left to hide among."""
        self._require(left.round, left.client)
        if self._shown or set(left.arrived) != set(self._held):
            raise MessageError(f"client {self.client}: asked for shares twice, or for others than it holds")
        if sum(left.arrived.values()) < self._threshold:
            raise TrainingError(
                f"client {self.client}: {sum(left.arrived.values())} neighbours are left and {self._threshold} are "
                "needed; no share is shown"
            )
        self._shown = True
        return Shares(self.round, self.client, self._of(left.arrived, 0), self._of(left.arrived, 1))

    def _of(self, arrived: Mapping[int, bool], kind: int) -> dict[int, int]:
        """Shares of seeds (0) of who is left, or of keys (1) of who is not."""
        return {other: self._held[other][kind] for other, there in arrived.items() if there != bool(kind)}

    def _require(self, number: int, client: int) -> None:
        if (number, client) != (self.round, self.client):
            raise MessageError(
                f"a message to client {client} in round {number}; this is client {self.client} in round {self.round}"
            )


def place_of(client: int) -> int:
    """Where a client's shares are values of the polynomial: from 1."""
    return client + 1


def _addressed(number: int, sender: int, receiver: int) -> tuple[int, bytes]:
    """What tells the two messages of a pair apart, and what they are about: one key seals one message either way."""
    return int(sender > receiver), struct.pack("<3I", number, sender, receiver)
