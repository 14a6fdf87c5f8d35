"""The coordinator: it conducts rounds with devices, and remembers what it counted of whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ownview.base.errors import MessageError, OutputError, TrainingError
from ownview.base.files import drop_unfinished, make_folder, write_bytes
from ownview.base.rights import inside, narrow
from ownview.deploy.agreement import Agreement, read_agreement
from ownview.deploy.coordination.asking import Asking
from ownview.deploy.coordination.attendance import Attendance
from ownview.deploy.coordination.participants import CountedRound, ParticipantLog
from ownview.deploy.coordination.register import Register
from ownview.deploy.device_fleet import DeviceFleet, NoClientsLeftError, OthersError
from ownview.deploy.envelopes.envelope import Envelope, Kind, line_of
from ownview.deploy.generations import Generation, Generations
from ownview.deploy.places.home import own_key
from ownview.deploy.places.measuring import USERS, means
from ownview.deploy.places.signers import SIGNERS
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Transport
from ownview.evaluation.metrics import HEADLINE
from ownview.federation.server import AggregationServer
from ownview.round.conduct import Round, UploadRule, conduct
from ownview.seam.client import Reporting

_ATTEMPTS = 20
"""Times that a masked round fails before the wait for the next attempt is as long as it gets."""


@dataclass
class _Standing:
    """Counted rounds and their participants.

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
        settings: how it conducts its rounds.
        say: called with one line for the operator.
        rules: that look at uploads before they are added up; see `round.conduct`.
        expected: names of all places that may take part: where too few of them do not refuse, a round ends with
            `NoQuorumError`. None where they are not known: the coordinator waits then.
    """

    def __init__(
        self,
        agreement: Agreement,
        transport: Transport,
        folder: Path,
        settings: CoordinatorSettings | None = None,
        say: Callable[[str], None] = lambda line: None,
        rules: Sequence[UploadRule] = (),
        expected: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self.agreement, self.transport, self.folder, self.say = agreement, transport, folder, say
        self.rules = tuple(rules)
        self.settings = settings or CoordinatorSettings()
        self.terms = agreement.terms()
        make_folder(folder, private=True)
        for line in narrow(inside(folder)):
            say(line)
        for name in ("agreement", "register.json", "participants.jsonl"):
            drop_unfinished(folder / name)
        self._require_same()
        self.noise = own_key(folder / "secret")
        self.server = AggregationServer(self.terms, self.noise)
        self.register = Register(folder / "register.json", agreement.clients, self.settings.users_per_place)
        self.generations = Generations(folder)
        self.standing = _Standing()
        self.results: dict[str, bytes] = {}
        self._resume()
        self.log = ParticipantLog(folder / "participants.jsonl", self.standing.done)
        self.asking = Asking(transport, self.settings.resend, say)
        self.attendance = Attendance(
            agreement, self.asking, self.register, self.settings, lambda: self.done, self._download, expected
        )
        owed = lambda: self.standing.owed  # noqa: E731 - what is owed changes
        self.devices = DeviceFleet(self.attendance, self._envelope, owed, self._over, folder / SIGNERS)
        self.started, self.newest = time.monotonic(), CountedRound(0, {})
        work = self.terms.client.work
        self.receives_after = isinstance(work, Reporting) and work.receives_after

    @property
    def done(self) -> int:
        """The last round that was counted."""
        return self.standing.done

    def run(self, rounds: int) -> None:
        """Run rounds up to this number; then all places present get the newest model."""
        for number in range(self.done + 1, rounds + 1):
            self.round(number)
        self.share()

    def round(self, number: int) -> CountedRound:
        """Run one round: it ends when it is counted, and not before; `NoQuorumError` where it cannot be."""
        self.started, failed, devices = time.monotonic(), 0, self.devices
        while True:
            if not devices.arrived:
                self._settle()
            try:
                conduct(self.server, devices, number, self.rules)
                break
            except (NoClientsLeftError, OthersError):
                self._load(self.generations.newest)
            except (MessageError, TrainingError, RuntimeError, ValueError, ArithmeticError) as error:
                if devices.combined or (self.terms.masked is None and not devices.arrived):
                    raise
                self._load(self.generations.newest)
                if self.terms.masked is None:
                    devices.blame(number, error)
                    continue
                failed += 1  # nothing is known of masks that cannot be lifted, nor whose fault it is: begin again
                self.say(line_of(f"round {number}: {error}"))
                if devices.lost(self.terms.masked.fewest):
                    return self._lose(CountedRound(number, {}, devices.asked, devices.refused_masks))
                # A place may go on spoiling it: wait longer every time, and stay.
                time.sleep(self.settings.greeting * min(failed / _ATTEMPTS, 1.0))
                devices.forget()
        self._settle()
        return self.newest

    def _over(self, going: Round) -> None:
        """Count a round that was combined."""
        found = self.devices.found
        notes = {place: said for place, (_, said) in found.answers.items() if said}
        counted, seconds = self.register.by_place(going.counted.tolist()), round(time.monotonic() - self.started, 3)
        self.newest = CountedRound(
            going.number, counted, self.devices.asked, found.refused, notes, found.resent, seconds
        )  # fmt: skip
        self._count(self.newest)

    def share(self) -> None:
        """Send everybody who is there what the server has now; who does not answer gets it another time."""
        self.attendance.greet()
        messages = {place: self._result(place, [], self._download()) for place in self.attendance.there()}
        self.asking.ask(messages, lambda place, answer: None, self.settings.greeting)

    def measure(self) -> dict[str, float]:
        """Means of metrics over all users that are there and hold an item out; places send sums alone."""
        messages = {
            place: self._envelope(Kind.MEASURE, self.done, place, {}, self._download()).pack()
            for place in self.attendance.there()
        }
        found = self.asking.ask(messages, _sums, self.settings.greeting)
        return means(list(found.answers.values()))

    def _count(self, one: CountedRound) -> None:
        """Remember all of it at once."""
        self.attendance.absences.end()
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
        self.attendance.absences.end()
        self.standing.done = one.round
        self.log.add(one)
        self._remember()
        return one

    def _settle(self) -> None:
        """Send results to those who are owed one; a place takes part again once it has its own."""
        there = set(self.transport.places())
        owed = {place: mine for place, mine in self.standing.owed.items() if place in there}
        messages = {place: self._result(place, mine, self.results[place]) for place, mine in owed.items()}
        found = self.asking.ask(messages, lambda place, answer: None, self.settings.greeting)
        for place in found.answers:
            del self.standing.owed[place], self.results[place]
        self.attendance.leave_alone(found.refused)
        if found.answers:
            self._remember()

    def _result(self, place: str, mine: list[int], download: bytes) -> bytes:
        number = self.standing.counted.get(place, 0) if mine else self.done
        return self._envelope(Kind.RESULT, number, place, {"clients": mine}, download).pack()

    def _envelope(self, kind: Kind, number: int, place: str, note: dict[str, Any], *parts: bytes) -> Envelope:
        about = {"agreed": self.agreement.digest, "back": self.standing.back, **note}
        return Envelope(kind, number, self.standing.counted.get(place, 0), about, parts)

    def _download(self) -> bytes:
        """Download for every client after the last round."""
        no_clients = torch.zeros(0, dtype=torch.long)
        return self.terms.codec.write_download(self.server.download(self.done, no_clients), 0)

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
            # Higher than before also where this machine's clock went back.
            self.standing.back = max(self.standing.back + 1, time.time_ns())

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
