"""Clients on devices: places that are asked over a network, each for some users. All uploads of a place count, or none.

Until shares of masks are shown an attempt at a round may end and another begin, over other clients: masked numbers say
nothing. Places that have shown shares take part in no other attempt, so that no round has two sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ownview.base.errors import MessageError, TrainingError
from ownview.deploy.coordination.arrivals import Arrival, arrivals, in_order
from ownview.deploy.coordination.asking import Asked
from ownview.deploy.coordination.attendance import Attendance
from ownview.deploy.envelopes.envelope import Envelope, Kind, line_of
from ownview.deploy.places.signers import read_signers
from ownview.federation.server import AggregationServer
from ownview.privacy.masking.exchange import SHOWN, MaskStep, unsound
from ownview.privacy.masking.messages import Keys
from ownview.round.conduct import Fleet, Round, Uploads
from ownview.round.groups import lacking

NO_ANSWER = "does not answer"
"""Why places are left out that have not answered when enough others have."""


class NoClientsLeftError(TrainingError):
    """No place has answered, or none is left: the round begins again."""


class OthersError(TrainingError):
    """Raised to repeat a sum without a place that was left out meanwhile."""


class DeviceFleet(Fleet):
    """Places, and one attempt at a round after the other.

    Args:
        attendance: who is there.
        envelope: kind, round, place, note and parts -> what a place is sent.
        owed: by place, users that still have to receive the result of an earlier round.
        over: called after a round was combined.
        signers: `signers.txt`, by which places are left out that others would not seal anything for; where the file is
            not there, one such place keeps every round of signed masks from going on.
    """

    inspects = True  # on arrival, so that no place waits for a lying one

    def __init__(
        self,
        attendance: Attendance,
        envelope: Callable[..., Envelope],
        owed: Callable[[], Mapping[str, object]],
        over: Callable[[Round], None],
        signers: Path,
    ) -> None:
        self.attendance, self.envelope, self.owed, self.over = attendance, envelope, owed, over
        self.signers = signers
        self.register, self.asking, self.settings = attendance.register, attendance.asking, attendance.settings
        self.say, self.combined = attendance.say, False
        self.forget()

    def forget(self) -> None:
        """Begin another attempt."""
        self.asked: dict[str, list[int]] = {}
        self.found: Asked[tuple[list[Arrival], list[str]]] = Asked()
        self.arrived: dict[str, list[Arrival]] = {}
        """By place, uploads that may be added up; kept until they have been combined."""
        self.refused_masks: dict[str, str] = {}
        self.attempt = time.time_ns()

    def choose(self, server: AggregationServer, number: int) -> Tensor:
        """Wait for enough users; the same users again where arrived uploads are added up once more."""
        if not self.arrived:
            self.forget()
            self.combined = False
            masked, least = server.terms.masked, self.settings.least
            least = least if masked is None else max(least, masked.fewest)

            def unfit(users: Tensor) -> str:
                return "" if masked is None else lacking(masked, self.units(server.choose(number, users).tolist()))

            users = self.attendance.wait(number, least, self.owed(), unfit)
            self.asked = self.register.by_place(server.choose(number, users).tolist())
        return torch.tensor(sorted(one for mine in self.asked.values() for one in mine), dtype=torch.long)

    def units(self, clients: Iterable[int]) -> list[list[int]]:
        """The users of every place: they share one generation, and one machine that may lie."""
        return list(self.register.by_place(clients).values())

    def about_masks(self, going: Round, step: MaskStep, content: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Ask the places of some clients; enough is what the sum needs."""
        asked, masked = self.register.by_place(content), going.terms.masked
        note, masks = {"attempt": self.attempt}, going.masks
        messages = {
            place: self._message(Kind[step.name], going.number, place, mine, note, *(content[one] for one in mine))
            for place, mine in asked.items()
        }

        signed = masked is not None and masked.masks.signed and step is MaskStep.KEYS and self.signers.is_file()
        known = frozenset(read_signers(self.signers).values()) if signed else None

        def take(place: str, answer: Envelope) -> dict[int, bytes]:
            read = [step.value.unpack(part) for part in answer.parts]
            if [one.client for one in read] != asked[place]:
                raise MessageError("messages about masks of other users than were asked")
            if any(one.round != going.number for one in read):
                raise MessageError("messages about masks of another round")
            if why := next((why for one in read if isinstance(one, Keys) and (why := unsound(one))), ""):
                raise MessageError(why)
            if known is not None and any(isinstance(one, Keys) and one.signer not in known for one in read):
                raise MessageError(f"signs with a key that {self.signers} does not list")
            return dict(zip(asked[place], answer.parts, strict=True))

        def enough(found: Asked[dict[int, bytes]]) -> bool:
            return masks is None or masks.enough([one for answer in found.answers.values() for one in answer])

        found = self.asking.ask(messages, take, self.settings.deadline, enough)
        self.attendance.leave_alone(found.refused)
        self.refused_masks |= found.refused
        return {client: data for answer in found.answers.values() for client, data in answer.items()}

    def lost(self, fewest: int) -> bool:
        """Whether so many have shown shares for this round, in an attempt that failed, that no other can succeed."""
        shown = {place for place, why in self.refused_masks.items() if SHOWN in why}
        others = sum(len(mine) for place, mine in self.asked.items() if place not in shown)
        return bool(shown) and others < fewest

    def ask(self, going: Round) -> Uploads:
        """Every place works with its users; what came is added up in the order of identities."""
        if not self.arrived:
            self.asked = self.register.by_place(going.counted.tolist())
            self.work(going)
            self.arrived = {place: uploads for place, (uploads, _) in self.found.answers.items()}
            if not self.arrived:
                raise NoClientsLeftError(f"round {going.number}: no place has answered")
        for place, mine in self.asked.items():
            if place not in self.arrived:
                going.leave_out(mine, self.found.refused.get(place, NO_ANSWER))
        yield from in_order(going.terms.codec, [one for mine in self.arrived.values() for one in mine])

    def work(self, going: Round) -> None:
        """Ask all places for their part of a round, until all have answered or those that have are enough."""
        codec, asked = going.terms.codec, self.asked
        download = b"" if going.receives_after else codec.write_download(going.first, 0)
        messages = {}
        for place, mine in asked.items():
            shares = [going.inboxes[client] for client in mine] if going.inboxes else []
            parts = [download, *shares] if download or shares else []
            messages[place] = self._message(Kind.WORK, going.number, place, mine, {}, *parts)

        def take(place: str, answer: Envelope) -> tuple[list[Arrival], list[str]]:
            return arrivals(codec, asked[place], answer, going.refusals), answer.note["notes"]

        self.found = self.asking.ask(messages, take, self.settings.deadline, partial(self._enough, asked))
        self.attendance.grown(self.found.users)
        for place in self.found.answers:
            self.attendance.refusals.end(place, greeting=False)
        self.attendance.leave_alone(self.found.refused)

    def _enough(self, asked: Mapping[str, list[int]], found: Asked[Any]) -> bool:
        answered = sum(len(mine) for place, mine in asked.items() if place in found.answers)
        # A place that refuses does not keep the others waiting for ever.
        wanted = sum(len(mine) for place, mine in asked.items() if place not in found.refused)
        return answered > 0 and answered >= self.settings.quorum * wanted

    def check(self, going: Round) -> None:
        """Leave out the whole place of a user that a rule left out: its users share one generation."""
        for place in list(self.arrived):
            why = next((going.left_out[one] for one in self.asked[place] if one in going.left_out), None)
            if why is not None:
                self.found.refused[place] = line_of(why)
                self._drop(going.number, place)
        if not self.arrived:
            raise NoClientsLeftError(f"round {going.number}: no place is left")
        if len(going.counted) > sum(len(self.asked[place]) for place in self.arrived):
            raise OthersError(f"round {going.number}: some were left out")

    def blame(self, number: int, error: Exception) -> None:
        """Go on without the place whose uploads are the largest: a sum within all limits cannot be combined."""
        largest = max(self.arrived, key=lambda place: max((one.norm for one in self.arrived[place]), default=0.0))
        self.found.refused[largest] = line_of(f"sent what cannot be combined: {error}")
        self._drop(number, largest)

    def _drop(self, number: int, place: str) -> None:
        why = self.found.refused[place]
        self.say(f"round {number}: goes on without place {place}, which {why}")
        self.attendance.leave_alone({place: why})
        del self.arrived[place]

    def tell(self, going: Round) -> None:
        """Write the counted round to disk, then send places their results."""
        self.combined = True
        wrong, lost = ({}, {}) if going.masks is None else (going.masks.wrong, going.masks.lost)
        for client, whose in sorted(wrong.items()):
            self.say(f"client {client} showed wrong shares of {len(whose)} clients; others' were used")
        for why in sorted(set(lost.values())):
            places = self.register.by_place([client for client, said in lost.items() if said == why])
            self.say(line_of(f"round {going.number}: goes on without {why} (places {', '.join(places)})"))
        self.over(going)
        self.forget()

    def _message(
        self, kind: Kind, number: int, place: str, clients: list[int], note: Mapping[str, Any], *parts: bytes
    ) -> bytes:
        return self.envelope(kind, number, place, {"clients": clients, **note}, *parts).pack()
