"""Masked sums between devices: the steps around a round's work, at the coordinator and at a place.

Secrets of masks are in a place's memory alone. A place that is killed in mid-round has lost them: its users drop out of
the sum, and their neighbours' shares take off what is left of their masks. A coordinator that is killed begins the
round again, with other keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ownview.base.errors import MessageError
from ownview.deploy.envelope import Envelope, Kind
from ownview.federation.aggregation import Partial
from ownview.federation.masked_round import Exchange, OwnMasks
from ownview.federation.messages import Upload
from ownview.masking.messages import Keys, SealedShares, Shares

Step = Callable[[Kind, Mapping[int, bytes], Callable[[bytes], int]], dict[int, bytes]]
"""What is asked, by client what it is told, who wrote an answer -> by client what it answered."""


class MaskedRound:
    """The coordinator's half of one attempt at a round.

    Args:
        exchange: of the round.
        step: asks clients, wherever they live.
    """

    def __init__(self, exchange: Exchange, step: Step) -> None:
        self.exchange, self.step = exchange, step

    def begin(self, clients: Sequence[int]) -> dict[int, bytes]:
        """Keys and shares; returns what each client that is still there gets of its neighbours' shares."""
        keys = self.step(Kind.KEYS, dict.fromkeys(clients, b""), lambda data: Keys.unpack(data).client)
        told = self.exchange.introduce(keys.values())
        shares = self.step(Kind.SHARES, told, lambda data: SealedShares.unpack(data).client)
        return self.exchange.deliver(shares.values())

    def take(self, upload: Upload) -> None:
        """Note whose masked numbers have arrived."""
        self.exchange.take(upload)

    def end(self, total: Partial) -> None:
        """Take the masks off the sum of what has arrived."""
        shown = self.step(Kind.SHOW, self.exchange.left(), lambda data: Shares.unpack(data).client)
        self.exchange.lift(total, shown.values())


class PlaceMasks:
    """The half of a place's users, for one attempt at a round after the other; the same message, the same answer."""

    def __init__(self) -> None:
        self.clients: dict[int, OwnMasks] = {}
        self.answered: dict[str, list[bytes]] = {}

    def answer(self, asked: Envelope, identities: Sequence[int], digest: str) -> list[bytes]:
        """One of the steps, for each of these users."""
        if digest not in self.answered:
            if len(asked.parts) != len(identities):
                raise MessageError(f"{len(asked.parts)} messages about masks for {len(identities)} users")
            pairs = list(zip(identities, asked.parts, strict=True))
            if asked.kind is Kind.KEYS:
                self.clients, self.answered = {one: OwnMasks(one) for one in identities}, {}
                found = [self.clients[one].keys(asked.round) for one in identities]
            elif asked.kind is Kind.SHARES:
                found = [self._of(one).shares(told) for one, told in pairs]
            else:
                found = [self._of(one).show(left) for one, left in pairs]
            self.answered[digest] = found
        return self.answered[digest]

    def put_on(self, inboxes: Mapping[int, bytes]) -> Callable[[Upload], Upload]:
        """Puts masks on one user's upload."""

        def masked(upload: Upload) -> Upload:
            client = int(upload.clients[0])
            return self._of(client).put_on(upload, inboxes[client])

        return masked

    def _of(self, client: int) -> OwnMasks:
        if client not in self.clients:
            raise MessageError(f"client {client}: asked about masks before it had keys")
        return self.clients[client]
