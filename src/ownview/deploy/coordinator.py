"""The coordinator: it chooses who takes part, asks, adds up what comes, and remembers what it counted of whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ownview.base.errors import MessageError, OutputError, TrainingError
from ownview.base.files import drop_unfinished, make_folder, write_bytes
from ownview.base.rights import inside, narrow
from ownview.config.participation import participants, participation
from ownview.deploy.absences import Absences
from ownview.deploy.agreement import Agreement, read_agreement
from ownview.deploy.arrivals import Arrival, arrivals, in_order
from ownview.deploy.asking import Asked, Asking
from ownview.deploy.envelope import Envelope, Kind, line_of
from ownview.deploy.generations import Generation, Generations
from ownview.deploy.home import own_key
from ownview.deploy.masks import MaskedRound, Steps
from ownview.deploy.measuring import USERS, means
from ownview.deploy.participants import CountedRound, ParticipantLog
from ownview.deploy.place import NO_TERMS
from ownview.deploy.register import Register
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Transport
from ownview.evaluation.metrics import HEADLINE
from ownview.federation.server import AggregationServer
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.privacy.masking.exchange import Exchange
from ownview.privacy.whole_steps import BOUND
from ownview.seam.client import Reporting

_ATTEMPTS = 20
"""Times that a masked round is begun before it must fail for good."""


@dataclass
class _Standing:
    """What has been counted of whom.

    Args:
        done: the last round.
        counted: by place, the last round of it that was counted.
        owed: by place, users that took part in that round and have not received its result yet.
        back: rises when the coordinator has to go back to an older checkpoint, so that places go back with it.
    """

    done: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    owed: dict[str, list[int]] = field(default_factory=dict)
    back: int = 0


class Coordinator:
    """A server of some places; it goes on where its folder's checkpoint is.

    Args:
        agreement: with all places.
        transport: to them.
        folder: of the checkpoint (two generations), the identities, and the log of participants.
        conduct: of rounds.
        say: told in one line what a person should know.
    """

    def __init__(
        self,
        agreement: Agreement,
        transport: Transport,
        folder: Path,
        conduct: CoordinatorSettings | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.agreement, self.transport, self.folder, self.say = agreement, transport, folder, say
        self.conduct = conduct or CoordinatorSettings()
        self.terms = agreement.terms()
        make_folder(folder, private=True)
        for line in narrow(inside(folder)):
            say(line)
        for name in ("agreement", "register.json", "participants.jsonl"):
            drop_unfinished(folder / name)
        self._require_same()
        self.noise = own_key(folder / "secret")
        self.server = AggregationServer(self.terms, self.noise)
        self.register = Register(folder / "register.json", agreement.clients, self.conduct.users_per_place)
        self.generations = Generations(folder)
        self.standing = _Standing()
        self.results: dict[str, bytes] = {}
        self._resume()
        self.log = ParticipantLog(folder / "participants.jsonl", self.standing.done)
        self.asking = Asking(transport, self.conduct.resend, say)
        self.greeted: set[str] = set()
        self.absences = Absences(self.conduct.greeting)
        self.declined: dict[str, str] = {}
        self.greetings = time.time_ns()
        work = self.terms.client.work
        self.receives_after = isinstance(work, Reporting) and work.receives_after

    @property
    def done(self) -> int:
        """The last round that was counted."""
        return self.standing.done

    def run(self, rounds: int) -> None:
        """Run rounds up to this number; then everybody who is there gets what came of them."""
        for number in range(self.done + 1, rounds + 1):
            self.round(number)
        self.share()

    def round(self, number: int) -> CountedRound:
        """Run one round: it ends when it is counted, and not before. No answer of a place ends it otherwise."""
        started, failed = time.monotonic(), 0
        while True:
            self._settle()
            asked = self._choose(number)
            masks = self._masks(number)
            try:
                inboxes = {} if masks is None else masks.begin([one for mine in asked.values() for one in mine])
                asked = asked if masks is None else self.register.by_place(inboxes)
                found = self._ask_for_work(number, asked, inboxes)
                counted = self._combined(number, found, masks) if self._enough(found, asked) else {}
            except (MessageError, TrainingError) as error:  # masks that cannot be lifted: nothing is known, begin again
                failed += 1
                self.say(f"round {number}: {error}")
                if masks is not None and masks.lost(asked):
                    return self._lose(CountedRound(number, {}, asked, masks.steps.refused))
                if failed % _ATTEMPTS == 0:  # a place may go on spoiling it: wait, and stay
                    time.sleep(self.conduct.greeting)
                continue
            if counted:
                break
        mine = {place: users for place, users in asked.items() if place in counted}
        notes = {place: said for place, (_, said) in found.answers.items() if said}
        seconds = round(time.monotonic() - started, 3)
        one = CountedRound(number, mine, asked, found.refused, notes, found.resent, seconds)
        self._count(one)
        self._settle()
        return one

    def share(self) -> None:
        """Send everybody who is there what the server has now; who does not answer gets it another time."""
        self._greet()
        messages = {place: self._result(place, [], self._download()) for place in self._there()}
        self.asking.ask(messages, lambda place, answer: None, self.conduct.greeting)

    def measure(self) -> dict[str, float]:
        """Means of metrics over all users that are there and hold an item out; places send sums alone."""
        messages = {
            place: self._envelope(Kind.MEASURE, self.done, place, {}, self._download()).pack()
            for place in self._there()
        }
        found = self.asking.ask(messages, _sums, self.conduct.greeting)
        return means(list(found.answers.values()))

    # --- who is there ---

    def _choose(self, number: int) -> dict[str, list[int]]:
        """Wait until there are enough users, and choose who takes part, by place."""
        said, masked = False, self.terms.masked
        least = self.conduct.least if masked is None else max(self.conduct.least, masked.threshold)
        while True:
            self._greet()
            there = [place for place in self._there() if place not in self.standing.owed]
            users = torch.tensor(self.register.of(there), dtype=torch.long)
            if len(users) >= least:
                break
            if not said:
                self.say(f"round {number}: waits for users: {len(users)} are there, expected {least}")
                said = True
            self.transport.receive(self.conduct.resend)
            self.greeted &= set(self.transport.places())
        chosen = participation(self.terms.options.clients)
        places = participants(chosen, self.terms.seed, number, len(users), self.terms.machine.device)
        return self.register.by_place(users[places].tolist())

    def _there(self) -> list[str]:
        """Places that are connected, know the terms, and are not left alone for a wrong answer."""
        return [place for place in self.absences.present(self.transport.places()) if place in self.greeted]

    def _leave_alone(self, refused: Mapping[str, str]) -> None:
        """Places that refused or answered wrongly; who lacks the terms is told them at once."""
        self.greeted -= set(refused)
        for place in (one for one, why in refused.items() if NO_TERMS not in why):
            self.absences.begin(place)

    def _greet(self) -> None:
        """Ask places that have come how many users they have, and tell them the terms and their identities."""
        self.greetings += 1
        new = [place for place in self.absences.present(self.transport.places()) if place not in self.greeted]
        hello = Envelope(Kind.HELLO, self.done, note={"greeting": self.greetings}).pack()
        found = self.asking.ask(dict.fromkeys(new, hello), lambda place, answer: answer.note, self.conduct.greeting)
        messages: dict[str, bytes] = {}
        declined: dict[str, str] = {}
        for place in sorted(found.answers):
            note = found.answers[place]
            why = self.register.enrol(place, note["users"])
            if why != self.declined.get(place, ""):
                declined[place] = self.declined[place] = why
            mine = self.register.places[place]
            if why and not mine:
                self.absences.begin(place)
            elif note["agreed"] == self.agreement.digest and note["known"] == len(mine):
                self.greeted.add(place)
            else:
                parts = [self.agreement.pack(), self._download()]
                messages[place] = Envelope(Kind.TERMS, self.done, note={"identities": mine}, parts=parts).pack()
        told = self.asking.ask(messages, lambda place, answer: None, self.conduct.greeting)
        self.greeted |= set(told.answers)
        self._leave_alone({**found.refused, **told.refused})
        self._decline(declined)

    def _decline(self, reasons: Mapping[str, str]) -> None:
        """Say at both ends why users of some places cannot take part."""
        for place, why in reasons.items():
            self.say(f"place {place}: {why}" if why else f"place {place}: all of its users take part now")
        messages = {place: Envelope(Kind.DECLINED, note={"why": why}).pack() for place, why in reasons.items() if why}
        self.asking.ask(messages, lambda place, answer: None, self.conduct.greeting)

    # --- a round ---

    def _ask_for_work(
        self, number: int, asked: Mapping[str, list[int]], inboxes: Mapping[int, bytes]
    ) -> Asked[tuple[list[Arrival], list[str]]]:
        download = b"" if self.receives_after else self._download(number)
        messages = {}
        for place, mine in asked.items():
            parts = [download, *(inboxes[client] for client in mine)] if inboxes else [download] if download else []
            messages[place] = self._envelope(Kind.WORK, number, place, {"clients": mine}, *parts).pack()

        def take(place: str, answer: Envelope) -> tuple[list[Arrival], list[str]]:
            too_long = partial(self.terms.refusals, number=number, bound=self.server.shared.get(BOUND))
            return arrivals(self.terms.codec, asked[place], answer, too_long), answer.note["notes"]

        found = self.asking.ask(messages, take, self.conduct.deadline, lambda found: self._enough(found, asked))
        self.greeted -= {place for place, users in found.users.items() if users > len(self.register.places[place])}
        self._leave_alone(found.refused)
        return found

    def _enough(self, found: Asked[Any], asked: Mapping[str, list[int]]) -> bool:
        answered = sum(len(mine) for place, mine in asked.items() if place in found.answers)
        # A place that refuses does not keep the others waiting for ever.
        wanted = sum(len(mine) for place, mine in asked.items() if place not in found.refused)
        return answered > 0 and answered >= self.conduct.quorum * wanted

    def _masks(self, number: int) -> MaskedRound | None:
        """The steps around the work of one attempt at a round, where uploads are masked."""
        masked, attempt = self.terms.masked, time.time_ns()
        if masked is None:
            return None
        agreed = self.asking, self.conduct.deadline, masked.threshold

        def message(kind: Kind, place: str, mine: list[int], parts: list[bytes]) -> bytes:
            return self._envelope(kind, number, place, {"clients": mine, "attempt": attempt}, *parts).pack()

        steps = Steps(*agreed, self.register.by_place, message, self._leave_alone)
        return MaskedRound(Exchange(masked.cohort, number, self.noise.number("ring")), steps)

    def _combined(
        self, number: int, found: Asked[tuple[list[Arrival], list[str]]], masks: MaskedRound | None
    ) -> Collection[str]:
        """Add up what came and combine it; returns the places that are in it.

        Values within all limits may still make a sum that cannot be combined, such as a matrix that has no inverse.
        Then the server's values are what they were, and the place whose uploads are the largest is left out. Of masked
        uploads nobody knows whose fault it is.
        """
        arrived = {place: uploads for place, (uploads, _) in found.answers.items()}
        while arrived:
            try:
                uploads = [one for mine in arrived.values() for one in mine]
                total = self._added_up(number, uploads, masks)
                clients = sorted(one.identity for one in uploads)
                self.server.finish(number, total, torch.tensor(clients, dtype=torch.long))
            except (TrainingError, RuntimeError, ValueError, ArithmeticError) as error:
                self._load(self.generations.newest)
                if masks is not None:
                    raise TrainingError(line_of(f"what came cannot be combined: {error}")) from error
                largest = max(arrived, key=lambda place: max((one.norm for one in arrived[place]), default=0.0))
                found.refused[largest] = line_of(f"sent what cannot be combined: {error}")
                self.say(f"round {number}: goes on without place {largest}, which {found.refused[largest]}")
                self._leave_alone({largest: found.refused[largest]})
                del arrived[largest]
            else:
                return arrived
        return ()

    def _added_up(self, number: int, arrived: Sequence[Arrival], masks: MaskedRound | None) -> MeanPartial | SumPartial:
        """The sums of what came."""
        total = self.server.begin(number)
        for upload in in_order(self.terms.codec, arrived):
            total.add(upload)
            self.server.take(upload)
            if masks is not None:
                masks.take(upload)
        if masks is not None:
            masks.end(total)
        return total

    def _count(self, one: CountedRound) -> None:
        """Remember all of it at once."""
        self.absences.end()
        self.standing.done = one.round
        self.standing.counted |= dict.fromkeys(one.counted, one.round)
        if self.receives_after:
            result = self._download()
            self.standing.owed |= {place: list(mine) for place, mine in one.counted.items()}
            self.results |= dict.fromkeys(one.counted, result)
        self.log.add(one)
        self._remember()

    def _lose(self, one: CountedRound) -> CountedRound:
        """Go on without a masked round whose shares were shown in an attempt that failed; nothing has changed."""
        if isinstance(self.terms.client.work, Reporting):
            raise TrainingError(
                f"round {one.round}: too few places are left that have shown no shares for it, and a sum is not made "
                f"twice; {self.terms.name} needs the sums of every round: begin again in an empty folder"
            )
        self.say(f"round {one.round}: is lost: its shares were shown before, and a sum is not made twice")
        self.absences.end()
        self.standing.done = one.round
        self.log.add(one)
        self._remember()
        return one

    def _settle(self) -> None:
        """Send results to those who are owed one; a place takes part again once it has its own."""
        there = set(self.transport.places())
        owed = {place: mine for place, mine in self.standing.owed.items() if place in there}
        messages = {place: self._result(place, mine, self.results[place]) for place, mine in owed.items()}
        found = self.asking.ask(messages, lambda place, answer: None, self.conduct.greeting)
        for place in found.answers:
            del self.standing.owed[place], self.results[place]
        self._leave_alone(found.refused)
        if found.answers:
            self._remember()

    def _result(self, place: str, mine: list[int], download: bytes) -> bytes:
        number = self.standing.counted.get(place, 0) if mine else self.done
        return self._envelope(Kind.RESULT, number, place, {"clients": mine}, download).pack()

    def _envelope(self, kind: Kind, number: int, place: str, note: dict[str, Any], *parts: bytes) -> Envelope:
        about = {"agreed": self.agreement.digest, "back": self.standing.back, **note}
        return Envelope(kind, number, self.standing.counted.get(place, 0), about, parts)

    def _download(self, number: int | None = None) -> bytes:
        """What the server has for every client, as it begins a round or after the last one."""
        nobody = torch.zeros(0, dtype=torch.long)
        return self.terms.codec.write_download(self.server.download(self.done if number is None else number, nobody), 0)

    # --- what is remembered ---

    def _remember(self) -> None:
        standing = self.standing
        about = {"counted": standing.counted, "owed": standing.owed, "back": standing.back}
        values = {name: value.clone() for name, value in self.server.pack().items()}
        state = Generation(standing.done, about, values, self.results)
        self.generations.write(state, keep=self.generations.newest)

    def _resume(self) -> None:
        for note in self.generations.notes:
            self.say(f"{self.folder}: {note}")
        found = self.generations.newest
        if found is not None:
            self._load(found)
            about = found.about
            self.standing = _Standing(found.round, dict(about["counted"]), dict(about["owed"]), about["back"])
            self.results = dict(found.kept)
        if self.generations.notes:
            self.standing.back = time.time_ns()

    def _load(self, state: Generation | None) -> None:
        """The server's values after the last counted round; before the first, the initial ones."""
        self.server = AggregationServer(self.terms, self.noise)
        if state is not None:
            self.server.unpack(state.values)

    def _require_same(self) -> None:
        file = self.folder / "agreement"
        if not file.is_file():
            write_bytes(file, self.agreement.pack(), private=True)
            return
        known = read_agreement(file)
        if known.digest != self.agreement.digest:
            raise OutputError(
                f"{self.folder}: has rounds of another agreement ({known.label}, {known.digest}); choose another folder"
            )


def _sums(place: str, answer: Envelope) -> dict[str, float]:
    sums = {name: float(value) for name, value in answer.note["sums"].items()}
    if any(sums[name] > sums[USERS] for name in HEADLINE):
        raise MessageError(f"metrics of {sums[USERS]:g} users that add up to more; each is 1 at most")
    return sums
