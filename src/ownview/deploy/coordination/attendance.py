"""Attendance: connected places are greeted, receive the terms, and are not asked for a while after a refusal."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

import torch
from torch import Tensor

from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.absences import Absences
from ownview.deploy.coordination.asking import Asking
from ownview.deploy.coordination.refusals import NoQuorumError, Refusals
from ownview.deploy.coordination.register import Register
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import NO_TERMS
from ownview.deploy.settings import CoordinatorSettings


class Attendance:
    """Places as a coordinator knows them.

    Args:
        agreement: with all places.
        asking: of places.
        register: their users' identities.
        settings: of the coordinator.
        done: the last counted round.
        download: what the server has for every client after it.
        expected: names of all places that may take part; None where they are not known.
    """

    def __init__(
        self,
        agreement: Agreement,
        asking: Asking,
        register: Register,
        settings: CoordinatorSettings,
        done: Callable[[], int],
        download: Callable[[], bytes],
        expected: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self.agreement, self.asking, self.register, self.settings = agreement, asking, register, settings
        self.done, self.download = done, download
        self.transport, self.say = asking.transport, asking.say
        self.greeted: set[str] = set()
        self.absences, self.refusals = Absences(settings.greeting), Refusals(expected)
        self._waits = 0, 0.0
        """The round that users were last waited for, and since when."""
        self.declined: dict[str, str] = {}
        self.greetings = time.time_ns()

    def wait(
        self, number: int, least: int, busy: Mapping[str, object], unfit: Callable[[Tensor], str] = lambda users: ""
    ) -> Tensor:
        """[P] identities of the users that are there, ascending, once they are enough for a round.

        Args:
            number: of the round.
            least: users.
            busy: places that cannot take part yet.
            unfit: of enough users, why they can make no round all the same; empty where they can.

        Raises:
            NoQuorumError: places keep refusing, and the others are too few; everybody is there, and unfit; or the round
                has waited long enough.
        """
        said = False
        if self._waits[0] != number:
            self._waits = number, time.monotonic()
        while True:
            self.greet()
            self.refusals.require_hope(number, least, self.register)
            ready = [place for place in self.there() if place not in busy]
            found = torch.tensor(users := self.register.of(ready), dtype=torch.long)
            why = f"expected {least}" if len(users) < least else unfit(found)
            if not why:
                return found
            if len(users) >= least and self.refusals.complete(ready):
                raise NoQuorumError(f"round {number}: {len(users)} users are there; {why}; invite other places")
            if not said:
                self.say(f"round {number}: waits for users: {len(users)} are there, {why}")
                said = True
            waiting = self.settings.waiting
            if waiting and time.monotonic() - self._waits[1] >= waiting:
                raise NoQuorumError(
                    f"round {number}: {len(users)} users are there after waiting={waiting:g} seconds, {why}"
                    f"{self.refusals.reasons()}"
                )
            self.transport.receive(self.settings.resend)
            self.greeted &= set(self.transport.places())

    def there(self) -> list[str]:
        """Places that are connected, know the terms, and are not left alone for a wrong answer."""
        return [place for place in self.absences.present(self.transport.places()) if place in self.greeted]

    def leave_alone(self, refused: Mapping[str, str], *, greeting: bool = False) -> None:
        """Places that refused or answered wrongly; one that lacks the terms receives them at once."""
        self.greeted -= set(refused)
        for place, why in refused.items():
            if NO_TERMS not in why:
                self.absences.begin(place)
                self.refusals.add(place, why, greeting=greeting)

    def grown(self, users: Mapping[str, int]) -> None:
        """Greet those places again that say they have more users than identities."""
        self.greeted -= {place for place, count in users.items() if count > len(self.register.places[place])}

    def greet(self) -> None:
        """Ask places that have come how many users they have, and send them the terms and their identities."""
        self.greetings += 1
        new = [place for place in self.absences.present(self.transport.places()) if place not in self.greeted]
        hello = Envelope(Kind.HELLO, self.done(), note={"greeting": self.greetings}).pack()
        patience = self.settings.greeting
        found = self.asking.ask(dict.fromkeys(new, hello), lambda place, answer: answer.note, patience)
        messages: dict[str, bytes] = {}
        declined: dict[str, str] = {}
        for place in sorted(found.answers):
            note = found.answers[place]
            why = self.register.enrol(place, note["users"])
            if why != self.declined.get(place, ""):
                declined[place] = self.declined[place] = why
            mine = self.register.places[place]
            if why and not mine:
                self.leave_alone({place: why}, greeting=True)
            elif note["agreed"] == self.agreement.digest and note["known"] == len(mine):
                self._greeted([place])
            else:
                parts = [self.agreement.pack(), self.download()]
                messages[place] = Envelope(Kind.TERMS, self.done(), note={"identities": mine}, parts=parts).pack()
        terms_sent = self.asking.ask(messages, lambda place, answer: None, patience)
        self._greeted(terms_sent.answers)
        self.leave_alone({**found.refused, **terms_sent.refused}, greeting=True)
        self._decline(declined)

    def _greeted(self, places: Iterable[str]) -> None:
        for place in places:
            self.greeted.add(place)
            self.refusals.end(place, greeting=True)

    def _decline(self, reasons: Mapping[str, str]) -> None:
        """Say at both ends why users of some places cannot take part."""
        for place, why in reasons.items():
            self.say(f"place {place}: {why}" if why else f"place {place}: all of its users take part now")
        messages = {place: Envelope(Kind.DECLINED, note={"why": why}).pack() for place, why in reasons.items() if why}
        self.asking.ask(messages, lambda place, answer: None, self.settings.greeting)
