"""The exchange of a round of masked sums: the server's half, by messages alone, and all clients in one process."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import torch

from ownview.base.errors import MessageError
from ownview.base.randomness import derive
from ownview.federation.aggregation import Partial
from ownview.federation.masked import Masked
from ownview.federation.messages import Upload
from ownview.masking.collector import MaskingServer
from ownview.masking.device import MaskingClient
from ownview.masking.fixed_point import MODULUS
from ownview.masking.messages import Keys, Left, Neighbours, SealedShares, Shares
from ownview.masking.primitives import Entropy

_Up = TypeVar("_Up", Keys, SealedShares, Shares)


class Exchange:
    """The server's half: bytes from clients in, bytes to clients out; its steps come in order.

    `up` and `down` count the bytes of every client's messages about masks.

    Args:
        masked: what was agreed on.
        number: of the round.
        seed: of the order in which clients stand on the ring.
    """

    def __init__(self, masked: Masked, number: int, seed: int) -> None:
        self.masked = masked
        self.server = MaskingServer(number, masked.threshold, masked.reach, derive(seed, "ring", number))
        self.up: Counter[int] = Counter()
        self.down: Counter[int] = Counter()

    def introduce(self, keys: Iterable[bytes]) -> dict[int, bytes]:
        """Keys -> whom each client shares masks with."""
        told = self.server.introduce(self._read(Keys, keys))
        return self._sent({client: one.pack() for client, one in told.items()})

    def deliver(self, shares: Iterable[bytes]) -> dict[int, bytes]:
        """Sealed shares -> what each client gets of them."""
        inboxes = self.server.deliver(self._read(SealedShares, shares))
        return self._sent({client: one.pack() for client, one in inboxes.items()})

    def take(self, upload: Upload) -> None:
        """Note whose masked numbers have arrived."""
        for client in upload.clients.tolist():
            self.server.take(client)

    def left(self) -> dict[int, bytes]:
        """What every client that is left is asked for."""
        return self._sent({client: one.pack() for client, one in self.server.left().items()})

    def lift(self, total: Partial, shown: Iterable[bytes]) -> None:
        """Take the masks off the sum of all whole numbers."""
        found = self._read(Shares, shown)
        if total.words is None:
            raise TypeError("there is no sum of whole numbers to take masks off")
        masks = torch.from_numpy(self.server.masks_left(found, len(total.words)).astype("int64"))
        total.words.sub_(masks.to(total.words.device)).remainder_(MODULUS)

    def _read(self, kind: type[_Up], messages: Iterable[bytes]) -> list[_Up]:
        found = []
        for data in messages:
            one = kind.unpack(data)
            self.up[one.client] += len(data)
            found.append(one)
        return found

    def _sent(self, messages: dict[int, bytes]) -> dict[int, bytes]:
        self.down.update({client: len(data) for client, data in messages.items()})
        return messages


class OwnMasks:
    """One client's half, by messages alone: bytes from the server in, bytes to it out.

    Args:
        client: its identity.
        entropy: of its secrets; nobody else may know what it returns.
    """

    def __init__(self, client: int, entropy: Entropy = secrets.token_bytes) -> None:
        self.client, self.entropy = client, entropy
        self._masking: MaskingClient | None = None

    def keys(self, number: int) -> bytes:
        """Public keys of a round, which begins anew."""
        self._masking = MaskingClient(self.client, number, self.entropy)
        return self._masking.keys().pack()

    def shares(self, told: bytes) -> bytes:
        """Shares of the client's secrets, sealed, for the neighbours it is told of."""
        return self._begun().shares(Neighbours.unpack(told)).pack()

    def put_on(self, upload: Upload, inbox: bytes) -> Upload:
        """The client's upload as it leaves: masked, with what its neighbours have sealed for it."""
        if upload.words is None:
            raise TypeError("only whole numbers can be masked")
        masks = self._begun().masks(SealedShares.unpack(inbox), upload.words.shape[1])
        words = upload.words + torch.from_numpy(masks.astype("int64")).to(upload.words.device)
        return replace(upload, words=words.remainder_(MODULUS))

    def show(self, left: bytes) -> bytes:
        """Shares of the neighbours' secrets, which lift masks off the sum; then those of the round are forgotten."""
        shown = self._begun().show(Left.unpack(left)).pack()
        self._masking = None
        return shown

    def _begun(self) -> MaskingClient:
        if self._masking is None:
            raise MessageError(f"client {self.client}: asked about masks before it had keys, or after the round")
        return self._masking


class MaskedRound:
    """A round in one process: every client is an object of its own, and all of them exchange bytes with the server.

    Args:
        masked: what was agreed on.
        number: of the round.
        cohort: identities of its clients.
        seed: of the run, which clients' secrets follow from, so that runs repeat; no device may do so.
    """

    def __init__(self, masked: Masked, number: int, cohort: Sequence[int], seed: int) -> None:
        self.exchange = Exchange(masked, number, seed)
        self.clients = {one: OwnMasks(one, drawn_from_seed(seed, number, one)) for one in cohort}
        told = self.exchange.introduce(client.keys(number) for client in self.clients.values())
        self.inboxes = self.exchange.deliver(self.clients[one].shares(data) for one, data in told.items())

    def put_on(self, upload: Upload) -> Upload:
        """Uploads as they leave their devices: masked."""
        each = [
            self.clients[client].put_on(upload.one(place), self.inboxes.pop(client))
            for place, client in enumerate(upload.clients.tolist())
        ]
        self.exchange.take(upload)
        return replace(upload, words=torch.cat([one.words for one in each if one.words is not None]))

    def take_off(self, total: Partial) -> None:
        """Masks off the sum, once everybody has sent."""
        asked = self.exchange.left()
        self.exchange.lift(total, [self.clients[one].show(data) for one, data in asked.items()])


def drawn_from_seed(seed: int, number: int, client: int) -> Entropy:
    """Bytes for a simulated client: everybody who knows the seed knows them."""
    drawn = 0

    def entropy(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"{seed} {number} {client} {drawn}".encode()).digest(count)

    return entropy
