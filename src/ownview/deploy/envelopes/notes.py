"""What every kind of message may say, as a question to a place and as its answer: note and number of parts.

Both ends read what arrives here. What is no message, damaged, of another version, too long, or says anything else than
its kind may say is a `MessageError`, for any bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ownview.base.errors import MessageError
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.envelopes.schema import FieldRule, Listed, Real, Record, Text, Whole
from ownview.deploy.places.measuring import USERS
from ownview.evaluation.metrics import HEADLINE
from ownview.messages.limits import (
    LARGEST_COUNT,
    LARGEST_NUMBER,
    LONGEST_ANSWER,
    LONGEST_LINE,
    LONGEST_QUESTION,
    MOST_PARTS,
    MOST_REMARKS,
)

_COUNT, _MOMENT, _DIGEST = Whole(0, LARGEST_COUNT), Whole(0, LARGEST_NUMBER), Text(64)
_CLIENTS = Listed(_COUNT, MOST_PARTS, distinct=True)
_LINE = Text(LONGEST_LINE)


@dataclass(frozen=True)
class Said:
    """Schema of one kind of message.

    Args:
        note: its words.
        parts: how many parts it has at least and at most, beside those of clients.
        of_clients: how many parts there may be for each of the clients that the note lists: 0, 1, or either.
    """

    note: FieldRule
    parts: tuple[int, int] = (0, 0)
    of_clients: tuple[int, ...] = (0,)

    def require(self, message: Envelope) -> None:
        """Raise `MessageError` where a message says anything else."""
        self.note.require(message.note, message.kind.name)
        clients = len(message.note.get("clients", ()))
        low, high = self.parts
        if not any(low <= len(message.parts) - each * clients <= high for each in self.of_clients):
            expected = str(low) if low == high else f"{low} to {high}"
            more = f", and one for each of {clients} clients" if 1 in self.of_clients else ""
            raise MessageError(f"{message.kind.name}: {len(message.parts)} parts; expected {expected}{more}")


def _asked(**fields: FieldRule) -> Record:
    return Record({"agreed": _DIGEST, "back": _MOMENT, **fields})


def _answered(**fields: FieldRule) -> Record:
    return Record({"of": _DIGEST, **fields})


_MASKS = Said(_asked(clients=_CLIENTS, attempt=_MOMENT), of_clients=(1,))
QUESTIONS: Mapping[Kind, Said] = {
    Kind.HELLO: Said(Record({}, {"greeting": _MOMENT})),
    Kind.TERMS: Said(Record({"identities": _CLIENTS}), (2, 2)),
    Kind.WORK: Said(_asked(clients=_CLIENTS), (0, 1), of_clients=(0, 1)),
    Kind.RESULT: Said(_asked(clients=_CLIENTS), (0, 1)),
    Kind.MEASURE: Said(_asked(), (0, 1)),
    Kind.KEYS: _MASKS,
    Kind.SHARES: _MASKS,
    Kind.AGREE: _MASKS,
    Kind.SHOW: _MASKS,
    Kind.DECLINED: Said(Record({"why": _LINE})),
}

_OF_CLIENTS = (0, MOST_PARTS)
_SUMS = Record({USERS: _COUNT, **dict.fromkeys(HEADLINE, Real(0, LARGEST_COUNT))})
ANSWERS: Mapping[Kind, Said] = {
    Kind.HELLO: Said(_answered(users=_COUNT, agreed=_DIGEST, known=_COUNT)),
    Kind.TERMS: Said(_answered(users=_COUNT, agreed=_DIGEST)),
    Kind.WORK: Said(_answered(users=_COUNT, notes=Listed(_LINE, MOST_REMARKS)), _OF_CLIENTS),
    Kind.RESULT: Said(_answered(users=_COUNT)),
    Kind.MEASURE: Said(_answered(sums=_SUMS)),
    Kind.KEYS: Said(_answered(), _OF_CLIENTS),
    Kind.SHARES: Said(_answered(), _OF_CLIENTS),
    Kind.AGREE: Said(_answered(), _OF_CLIENTS),
    Kind.SHOW: Said(_answered(), _OF_CLIENTS),
    Kind.REFUSED: Said(_answered(why=_LINE)),
    Kind.DECLINED: Said(_answered()),
}


def read_question(data: bytes) -> Envelope:
    """What a coordinator asks, as a place reads it."""
    asked = Envelope.unpack(data, LONGEST_QUESTION)
    if asked.kind not in QUESTIONS:
        raise MessageError(f"a place answers what it is asked; {asked.kind.name} asks for nothing")
    QUESTIONS[asked.kind].require(asked)
    return asked


def read_answer(data: bytes, to: Kind, digest: str) -> Envelope | None:
    """What a place answers to a question, as the coordinator reads it; None for a late answer to another question.

    Args:
        data: untrusted bytes.
        to: kind of the question.
        digest: of the question.
    """
    answer = Envelope.unpack(data, LONGEST_ANSWER)
    ANSWERS[answer.kind].require(answer)
    if answer.note["of"] != digest:
        return None
    if answer.kind not in (to, Kind.REFUSED):
        raise MessageError(f"{answer.kind.name} in answer to {to.name}")
    return answer
