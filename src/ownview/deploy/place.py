"""A place: some users with their data and their clients' values. Everything it does for others is to answer a message.

What a client learns in a round counts once the coordinator has counted it. So a place keeps the state after the last
counted round and the state after what it did since, and every message says which round of the place was counted last:
what was done and not counted ends as if it had not been done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import MessageError, OwnviewError
from ownview.base.rights import narrow
from ownview.data.reading.readers import read
from ownview.deploy.agreement import Agreement
from ownview.deploy.envelopes.envelope import Envelope, Kind, digest_of, line_of, refusal
from ownview.deploy.envelopes.notes import read_question
from ownview.deploy.generations import Generation, Generations
from ownview.deploy.places.floor import Floor
from ownview.deploy.places.holdings import Holdings, read_holdings
from ownview.deploy.places.home import SHOWN, Home, Members, Newest
from ownview.deploy.places.masks import PlaceMasks
from ownview.deploy.places.measuring import metric_sums
from ownview.deploy.places.releases import Releases
from ownview.federation.terms import Terms
from ownview.messages.wire import MAGIC, Message
from ownview.round.residents import OwnData, Residents

NO_TERMS = "no agreement"
"""The word by which a coordinator knows that a place needs the terms again."""

WORKED = "worked"
"""Among the values of a state: [k] whether a user has ever taken part."""


class Place:
    """Resident: it holds its users' values between messages, and its folder has all of them.

    Args:
        home: folder with `ratings.csv`; see `deploy.places.home`.
        say: called with one line for the operator.
        floor: the weakest privacy under which the place answers, from now on; None for the one it has. A place that
            has none takes that of the first agreement, so that no later one is weaker.
    """

    def __init__(self, home: Path, say: Callable[[str], None] = lambda line: None, floor: Floor | None = None) -> None:
        self.home, self.say = Home(home), say
        self.home.clear_up()
        if floor is not None:
            self.home.keep_floor(floor)
        self.floor = self.home.floor()
        for line in self.home.keep_private():
            self.say(line)
        self.generations = Generations(self.home.state)
        self.members = self.home.members()
        self.newest = self.home.newest()
        self.agreement: Agreement | None = None
        self.notes = list(self.generations.notes)
        self.masks = PlaceMasks(self.home.state / SHOWN, self.home.trust)
        self.residents: Residents | None = None
        self.at: Generation | None = None
        """The generation that the residents' values are; None for the initial values."""
        self._known_file: tuple[int, ...] | None = None
        self._one_at_a_time = threading.Lock()
        for note in self.notes:
            self.say(f"{self.home.state}: {note}")
        agreed = self.home.agreement()
        if agreed is not None:
            self._agree(agreed)

    def answer(self, message: bytes) -> bytes:
        """The answer to a message; the same again where the same message comes again. What fails is refused."""
        with self._one_at_a_time:
            digest = digest_of(message)
            try:
                asked = read_question(message)
            except MessageError as error:
                answer = refusal(self._why(error), digest)
            else:
                answer = self._tried(asked, digest)
            sent = answer.pack()
            line = {"kind": answer.kind.name.lower(), "round": answer.round, "bytes": len(sent)}
            self.home.note_sent({**line, "users": sum(map(bool, answer.parts)), "what": _names_in(answer.parts)})
            return sent

    def _tried(self, asked: Envelope, digest: str) -> Envelope:
        try:
            return self._answered(asked, digest)
        except Exception as error:  # no message may end a place
            self.residents = None  # what it began may stand half-way
            return refusal(self._why(error), digest)

    def _why(self, error: Exception) -> str:
        """The part of an error that may leave: all of it if about the message; others may name users and files."""
        kind = type(error).__name__
        self.say(line_of(str(error) if isinstance(error, OwnviewError) else f"{kind}: {error}"))
        return str(error) if isinstance(error, MessageError) else f"{kind} at the place, which tells the rest at home"

    def _answered(self, asked: Envelope, digest: str) -> Envelope:
        kinds = {
            Kind.HELLO: self._hello,
            Kind.TERMS: self._terms,
            Kind.WORK: self._work,
            Kind.RESULT: self._result,
            Kind.MEASURE: self._measure,
            Kind.DECLINED: self._declined,
            **dict.fromkeys((Kind.KEYS, Kind.SHARES, Kind.AGREE, Kind.SHOW), self._mask),
        }
        if self.agreement is not None and asked.kind is not Kind.TERMS:
            self._require_floor(self.agreement)
        answer = kinds[asked.kind](asked, digest)
        return replace(answer, note={**answer.note, "of": digest})

    # --- who is here, and on what terms ---

    def _hello(self, asked: Envelope, digest: str) -> Envelope:
        agreed = self.agreement.digest if self.agreement is not None else ""
        return Envelope(Kind.HELLO, note={"users": self._users(), "agreed": agreed, "known": self._known_members()})

    def _terms(self, asked: Envelope, digest: str) -> Envelope:
        agreement = Agreement.unpack(asked.parts[0])
        self._require_floor(agreement)
        if self.agreement is not None and self.agreement.digest != agreement.digest:
            raise MessageError(
                f"takes part in another federation ({self.agreement.label}, agreement {self.agreement.digest}); "
                f"expected an empty folder {self.home.state.name} to join this one"
            )
        identities = tuple(asked.note["identities"])
        known = self.members.identities
        if identities[: len(known)] != known:
            raise MessageError(f"other identities for {len(known)} users who have theirs already; they never change")
        self._users()
        if len(identities) > len(self.members.users):
            raise MessageError(f"{len(identities)} identities for {len(self.members.users)} users")
        if self.agreement is None:
            if agreement.ratings or agreement.user_columns:
                read_holdings(self.home.ratings, agreement, known_of_users=self.home.users)
            self._agree(agreement)
            if self.floor is None:
                self.floor = Floor(agreement.federation.privacy)
                self.home.keep_floor(self.floor)
            self.home.keep_agreement(agreement)
        self.members = Members(self.members.users, identities)
        self.home.keep_members(self.members)
        if asked.parts[1]:
            self._receive(asked.round, asked.parts[1])
        self.residents = None
        return Envelope(Kind.TERMS, note={"users": self._users(), "agreed": agreement.digest})

    def _require_floor(self, agreement: Agreement) -> None:
        """Refuse to answer below the place's own floor."""
        why = "" if self.floor is None else self.floor.refusal(agreement.federation.privacy)
        if why:
            raise MessageError(f"{why}; nothing leaves this place")

    def _declined(self, asked: Envelope, digest: str) -> Envelope:
        self.say(line_of(f"the server declines users of this place: {asked.note['why']}"))
        return Envelope(Kind.DECLINED)

    def _agree(self, agreement: Agreement) -> None:
        try:
            self.terms = agreement.terms()
        except OwnviewError as error:  # about the agreement alone, so its sender may know
            raise MessageError(str(error)) from error
        self.releases = Releases(self.home, agreement, self.terms)
        self.agreement = agreement

    def _users(self) -> int:
        """Number of users now; new ones are appended."""
        if self._known_file != self._file_now():
            for line in narrow([self.home.ratings, self.home.users]):
                self.say(line)
            known = set(self.members.users)
            new = tuple(one for one in map(str, read(self.home.ratings).users.tolist()) if one not in known)
            if new:
                self.members = Members(self.members.users + new, self.members.identities)
                self.home.keep_members(self.members)
            self._known_file, self.residents = self._file_now(), None
        return len(self.members.users)

    def _known_members(self) -> int:
        return len(self.members.identities)

    def _file_now(self) -> tuple[int, ...]:
        files = (one.stat() for one in (self.home.ratings, self.home.users) if one.is_file())
        return tuple(number for one in files for number in (one.st_mtime_ns, one.st_size))

    # --- rounds ---

    def _work(self, asked: Envelope, digest: str) -> Envelope:
        terms, chosen = self._required(asked), self._positions(asked.note["clients"])
        done = self.generations.newest
        if done is not None and done.about.get("of") == digest:
            return Envelope.unpack(done.kept["answer"])
        base = self._stand_on(asked.counted)
        self.releases.begin()
        residents = self._at_home(terms, base)
        download = asked.parts[0] if asked.parts else b""
        mark = self.releases.mark(digest)
        self.releases.note(asked.round, [self.members.users[place] for place in chosen.tolist()], mark)
        put_on = None
        if terms.masked is not None:
            if len(asked.parts) != 1 + len(chosen):
                raise MessageError(f"{len(asked.parts)} parts for {len(chosen)} users; expected a download and shares")
            put_on = self.masks.put_on(dict(zip(self._identities(chosen), asked.parts[1:], strict=True)))
        uploads = residents.round(asked.round, download, chosen, self.home.noise().derived(mark), put_on)
        note = {"users": self._users(), "notes": self._unsent_notes()}
        answer = Envelope(Kind.WORK, asked.round, asked.counted, note, uploads)
        about = {"of": digest, "heard": _heard(asked)}
        values = residents.pack() | {WORKED: worked_by(base, len(self.members.identities))}
        values[WORKED][chosen] = True
        state = Generation(asked.round, about, values, {"answer": answer.pack()})
        self.at = self.generations.write(state, keep=base)
        if download:
            self._receive(asked.round - 1, download)
        return answer

    def _mask(self, asked: Envelope, digest: str) -> Envelope:
        masked = self._required(asked).masked
        if masked is None:
            raise MessageError("asked about masks; none were agreed on")
        identities = self._identities(self._positions(asked.note["clients"]))
        parts = self.masks.answer(asked, identities, digest, masked.cohort, signed=masked.masks.signed)
        return Envelope(asked.kind, asked.round, asked.counted, parts=parts)

    def _result(self, asked: Envelope, digest: str) -> Envelope:
        terms, chosen = self._required(asked), self._positions(asked.note["clients"])
        base = self._stand_on(asked.counted)
        download = asked.parts[0] if asked.parts else b""
        if len(chosen) and (base is None or not base.about.get("settled")):
            residents = self._at_home(terms, base)
            if residents.settles:
                residents.settle(download, chosen)
                about = {"settled": True, "heard": _heard(asked)}
                values = residents.pack() | {WORKED: worked_by(base, len(self.members.identities))}
                settled = Generation(asked.counted, about, values)
                self.at = self.generations.write(settled, keep=base)
        self._receive(asked.round, download)
        return Envelope(Kind.RESULT, asked.round, asked.counted, {"users": self._users()})

    def _measure(self, asked: Envelope, digest: str) -> Envelope:
        terms = self._required(asked)
        residents = self._at_home(terms, self._stand_on(asked.counted))
        download = asked.parts[0] if asked.parts else self.newest.download
        sums = metric_sums(residents, self._holdings(), download)
        return Envelope(Kind.MEASURE, asked.round, asked.counted, {"sums": sums})

    def _receive(self, number: int, download: bytes) -> None:
        if download and number >= self.newest.round:
            self.newest = Newest(number, download)
            self.home.keep_newest(self.newest)

    def _required(self, asked: Envelope) -> Terms:
        if self.agreement is None or asked.note["agreed"] != self.agreement.digest:
            raise MessageError(f"{NO_TERMS}: the message is of agreement {asked.note['agreed']}")
        known = self.generations.newest
        if known is not None and _age(asked.note["back"], asked.counted) < _age(**known.about["heard"]):
            raise MessageError(f"an old message of round {asked.round}: later ones were counted since")
        self._users()
        return self.terms

    def _positions(self, identities: Sequence[int]) -> Tensor:
        """[B] places of identities."""
        place = {identity: k for k, identity in enumerate(self.members.identities)}
        unknown = next((one for one in identities if one not in place), None)
        if unknown is not None:
            raise MessageError(f"{NO_TERMS}: no user here has the identity {unknown}")
        return torch.tensor([place[one] for one in identities], dtype=torch.long)

    def _identities(self, places: Tensor) -> list[int]:
        return [self.members.identities[place] for place in places.tolist()]

    def _stand_on(self, counted: int) -> Generation | None:
        """The state after the last counted round; None for the initial one. What was done since is dropped."""
        if counted == 0:
            return None
        found = self.generations.after(counted)
        if found is None:
            found = max(
                self.generations.slots.values(), key=lambda one: (one.round <= counted, one.serial), default=None
            )
            stands = "the beginning" if found is None else f"round {found.round}"
            note = f"the state after round {counted} is not there; going on from {stands}"
            self.notes.append(note)
            self.say(f"{self.home.state}: {note}")
        return found

    def _at_home(self, terms: Terms, base: Generation | None) -> Residents:
        """The residents with the values of a state."""
        if self.residents is None or self.at is not base:
            self.residents = Residents(terms, self._own_data())
            if base is not None:
                self.residents.unpack(base.values)
            self.at = base
        return self.residents

    def _own_data(self) -> OwnData:
        holdings = self._holdings()
        identities = torch.tensor(self.members.identities, dtype=torch.long)
        users = np.array(holdings.users, dtype=object)
        return OwnData(identities, holdings.train, holdings.excluded, holdings.timeline, users, holdings.facts)

    def _holdings(self) -> Holdings:
        """What the users that have an identity train on."""
        assert self.agreement is not None
        files = self.releases.ratings(), self.releases.users()
        known = len(self.members.identities)
        return read_holdings(files[0], self.agreement, self.members.users, files[1]).first(known)

    def _unsent_notes(self) -> list[str]:
        """Notes for the coordinator that were not sent yet."""
        notes, self.notes = self.notes, []
        return notes


def worked_by(state: Generation | None, users: int) -> Tensor:
    """[k] whether a user has ever taken part; False without a state."""
    found = torch.zeros(users, dtype=torch.bool)
    if state is not None:
        known = state.values[WORKED]
        found[: len(known)] = known
    return found


def _heard(asked: Envelope) -> dict[str, int]:
    """Counted rounds, as a message names them."""
    return {"back": asked.note["back"], "counted": asked.counted}


def _names_in(uploads: Sequence[bytes]) -> list[str]:
    """Names of the method's values that the uploads of a message hold."""
    first = next((one for one in uploads if one), b"")
    return sorted(Message.unpack(first).tables) if first.startswith(MAGIC) else []


def _age(back: int, counted: int) -> tuple[int, int]:
    """Order of a coordinator's messages: a later one compares greater."""
    return back, counted
