"""Masked sums between devices: the steps of `federation.masked_round` as messages between a coordinator and places.

Secrets of a round live in memory alone. A place that was killed in the middle of a round has none, and its users count
as gone; a round that is begun anew has other keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ownview.base.errors import MessageError
from ownview.deploy.asking import Asking
from ownview.deploy.envelope import Envelope, Kind
from ownview.federation.aggregation import Partial
from ownview.federation.masked import Masked
from ownview.federation.masked_round import Exchange, OwnMasks
from ownview.federation.messages import Upload
from ownview.federation.terms import Terms

STEPS = (Kind.KEYS, Kind.SHARES, Kind.SHOW)
"""What a place is asked about masks alone."""

Enclose = Callable[[Kind, str, Mapping[str, Any], Sequence[bytes]], bytes]
"""Kind, place, words and parts -> a message of the round to that place."""


class PlaceMasks:
    """Masks of a place's users in the round at hand."""

    def __init__(self) -> None:
        self._own: dict[int, OwnMasks] = {}
        self._answers: dict[str, Envelope] = {}

    def answered(self, asked: Envelope, digest: str) -> Envelope:
        """The answer to a step; the same again where the same message comes again."""
        if digest in self._answers:
            return self._answers[digest]
        clients = [int(one) for one in asked.note.get("clients", ())]
        if asked.kind is Kind.KEYS:
            self._own, self._answers = {one: OwnMasks(one) for one in clients}, {}
            parts = [self._own[one].keys(asked.round) for one in clients]
        else:
            step = OwnMasks.shares if asked.kind is Kind.SHARES else OwnMasks.show
            parts = [step(self._of(one), part) for one, part in _paired(clients, asked.parts)]
        self._answers[digest] = Envelope(asked.kind, asked.round, asked.counted, {}, parts)
        return self._answers[digest]

    def putting_on(self, asked: Envelope, terms: Terms) -> Callable[[Upload], Upload] | None:
        """What puts masks on uploads of a round; refuses to work without shares where masks were agreed on."""
        if terms.masked is None:
            return None
        inboxes = dict(_paired([int(one) for one in asked.note.get("clients", ())], asked.parts[1:]))

        def put_on(upload: Upload) -> Upload:
            client = int(upload.clients[0])
            return self._of(client).put_on(upload, inboxes[client])

        return put_on

    def _of(self, client: int) -> OwnMasks:
        if client not in self._own:
            raise MessageError(f"client {client}: has no keys of this round; it may have been started anew since")
        return self._own[client]


class MaskedTalk:
    """The coordinator's half of one attempt at a round.

    Args:
        masked: what was agreed on.
        number: of the round.
        asking: places.
        enclose: makes messages to them.
        deadline: seconds to wait for an answer.
    """

    def __init__(self, masked: Masked, number: int, asking: Asking, enclose: Enclose, deadline: float) -> None:
        self.exchange = Exchange(masked, number, secrets.randbits(63))
        self.asking, self.enclose, self.deadline = asking, enclose, deadline
        self.asked: dict[str, list[int]] = {}
        self._inboxes: dict[int, bytes] = {}

    def begin(self, asked: Mapping[str, list[int]]) -> None:
        """Keys and shares of everybody who is asked; who does not answer takes no part."""
        attempt = {"attempt": secrets.token_hex(8)}  # the same message would be answered with the same keys
        keys = self._ask(Kind.KEYS, asked, {}, attempt)
        told = self.exchange.introduce([one for mine in keys.values() for one in mine])
        shares = self._ask(Kind.SHARES, {place: asked[place] for place in keys}, told, attempt)
        self._inboxes = self.exchange.deliver([one for mine in shares.values() for one in mine])
        self.asked = {place: asked[place] for place in shares}

    def inboxes(self, place: str) -> list[bytes]:
        """What the users of a place get of their neighbours' shares."""
        return [self._inboxes[client] for client in self.asked[place]]

    def lift(self, total: Partial, uploads: Sequence[Upload]) -> None:
        """Masks off the sum of uploads, by shares of those who are left."""
        for upload in uploads:
            self.exchange.take(upload)
        left = self.exchange.left()
        asked = {place: [one for one in mine if one in left] for place, mine in self.asked.items()}
        shown = self._ask(Kind.SHOW, {place: mine for place, mine in asked.items() if mine}, left, {})
        self.exchange.lift(total, [one for mine in shown.values() for one in mine])

    def _ask(
        self, kind: Kind, asked: Mapping[str, list[int]], parts: Mapping[int, bytes], note: Mapping[str, str]
    ) -> dict[str, Sequence[bytes]]:
        """By place that has answered, what came of every user of it."""
        messages = {
            place: self.enclose(kind, place, {"clients": mine, **note}, [parts[one] for one in mine if one in parts])
            for place, mine in asked.items()
        }

        def take(place: str, answer: Envelope) -> Sequence[bytes]:
            return [part for _, part in _paired(asked[place], answer.parts)]

        return self.asking.ask(messages, take, self.deadline).answers


def _paired(clients: Sequence[int], parts: Sequence[bytes]) -> list[tuple[int, bytes]]:
    if len(clients) != len(parts):
        raise MessageError(f"{len(parts)} parts about masks of {len(clients)} users")
    return list(zip(clients, parts, strict=True))
