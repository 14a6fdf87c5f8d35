"""Masked sums between devices: the steps around a round's work, at the coordinator and at a place.

Secrets of masks are in a place's memory alone. A place that is killed in mid-round has lost them: its users drop out of
the sum, and the others' shares take off what is left of their masks. A coordinator that is killed begins the round
again, with other keys; who has shown shares by then is out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ownview.base.errors import MessageError
from ownview.base.files import write_text
from ownview.deploy.asking import Asked, Asking
from ownview.deploy.envelope import Envelope, Kind
from ownview.messages.sums import Partial
from ownview.messages.upload import Upload
from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.exchange import SHOWN, Exchange, OwnMasks, require_not_shown
from ownview.privacy.masking.messages import Keys, Left, SealedShares, Shares


class Steps:
    """How a coordinator asks clients about masks, wherever they live.

    `refused` is by place, why it did not answer one of the steps.

    Args:
        asking: of places.
        deadline: seconds for a step.
        threshold: how many clients are enough after it.
        by_place: where clients live.
        message: kind, place, its clients and what each is told -> what the place is sent.
        leave_alone: told of the places that refused.
    """

    def __init__(
        self,
        asking: Asking,
        deadline: float,
        threshold: int,
        by_place: Callable[[Iterable[int]], dict[str, list[int]]],
        message: Callable[[Kind, str, list[int], list[bytes]], bytes],
        leave_alone: Callable[[Mapping[str, str]], None],
    ) -> None:
        self.asking, self.deadline, self.threshold = asking, deadline, threshold
        self.by_place, self.message, self.leave_alone = by_place, message, leave_alone
        self.refused: dict[str, str] = {}

    def ask(self, kind: Kind, told: Mapping[int, bytes], writer: Callable[[bytes], int]) -> dict[int, bytes]:
        """By client what it answered.

        Args:
            kind: of the step.
            told: by client.
            writer: reads who wrote an answer.
        """
        asked = self.by_place(told)
        messages = {
            place: self.message(kind, place, mine, [told[one] for one in mine]) for place, mine in asked.items()
        }

        def take(place: str, answer: Envelope) -> dict[int, bytes]:
            if [writer(part) for part in answer.parts] != asked[place]:
                raise MessageError("messages about masks of other users than were asked")
            return dict(zip(asked[place], answer.parts, strict=True))

        def enough(found: Asked[dict[int, bytes]]) -> bool:
            return sum(map(len, found.answers.values())) >= self.threshold

        found = self.asking.ask(messages, take, self.deadline, enough)
        self.leave_alone(found.refused)
        self.refused |= found.refused
        return {client: data for answer in found.answers.values() for client, data in answer.items()}


class MaskedRound:
    """The coordinator's half of one attempt at a round.

    Until shares are shown an attempt may end and another begin, over other clients: masked numbers say nothing. Places
    that have shown shares take part in no other attempt, so that no round has two sums.

    Args:
        exchange: of the round.
        steps: asks clients.
    """

    def __init__(self, exchange: Exchange, steps: Steps) -> None:
        self.exchange, self.steps = exchange, steps

    def lost(self, asked: Mapping[str, Sequence[int]]) -> bool:
        """Whether so many have shown shares for this round, in an attempt that failed, that no other can succeed.

        Args:
            asked: by place, whom this attempt was to be with.
        """
        shown = {place for place, why in self.steps.refused.items() if SHOWN in why}
        others = sum(len(mine) for place, mine in asked.items() if place not in shown)
        return bool(shown) and others < self.steps.threshold

    def begin(self, clients: Sequence[int]) -> dict[int, bytes]:
        """Keys and shares; returns what each client that is still there gets of the others' shares."""
        keys = self.steps.ask(Kind.KEYS, dict.fromkeys(clients, b""), lambda data: Keys.unpack(data).client)
        told = self.exchange.introduce(keys.values())
        shares = self.steps.ask(Kind.SHARES, told, lambda data: SealedShares.unpack(data).client)
        return self.exchange.deliver(shares.values())

    def take(self, upload: Upload) -> None:
        """Note whose masked numbers have arrived."""
        self.exchange.take(upload)

    def end(self, total: Partial) -> None:
        """Take the masks off the sum of what has arrived."""
        shown = self.steps.ask(Kind.SHOW, self.exchange.left(), lambda data: Shares.unpack(data).client)
        self.exchange.lift(total, shown.values())
        for client, whose in sorted(self.exchange.server.wrong.items()):
            self.steps.asking.say(f"client {client} showed wrong shares of {len(whose)} clients; others' were used")


class PlaceMasks:
    """The half of a place's users, for one attempt at a round after the other; the same message, the same answer.

    A place shows shares for one set of arrived clients in a round, and that it did is on its disk before they leave:
    after that it takes part in no other attempt at this round or an earlier one.

    Args:
        file: that the last round shares were shown for is kept in.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.shown = int(file.read_text(encoding="ascii")) if file.is_file() else 0
        self.clients: dict[int, OwnMasks] = {}
        self.answered: dict[str, list[bytes]] = {}

    def answer(self, asked: Envelope, identities: Sequence[int], digest: str, cohort: Cohort) -> list[bytes]:
        """One of the steps, for each of these users."""
        if digest not in self.answered:
            if len(asked.parts) != len(identities):
                raise MessageError(f"{len(asked.parts)} messages about masks for {len(identities)} users")
            require_not_shown(asked.round, self.shown)
            pairs = list(zip(identities, asked.parts, strict=True))
            if asked.kind is Kind.KEYS:
                self.clients, self.answered = {one: OwnMasks(one, cohort) for one in identities}, {}
                found = [self.clients[one].keys(asked.round) for one in identities]
            elif asked.kind is Kind.SHARES:
                found = [self._of(one).shares(told) for one, told in pairs]
            else:
                found = self._show(asked.round, pairs)
            self.answered[digest] = found
        return self.answered[digest]

    def _show(self, number: int, pairs: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """Shares, of all users for the same set."""
        sets = {frozenset(Left.unpack(left).arrived.items()) for _, left in pairs}
        if len(sets) > 1:
            raise MessageError(f"round {number}: users of one place are told of {len(sets)} sets of arrived clients")
        found = [self._of(one).show(left) for one, left in pairs]
        write_text(self.file, str(number), private=True)
        self.shown = number
        return found

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
