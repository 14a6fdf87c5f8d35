"""The envelope of every message between a coordinator and a place: version, kind, round, checksum.

Little-endian:

    "OVP", version: 4 bytes; kind, 3 bytes 0: 4; round, last counted round of the place, bytes of the note, number of
    parts: 4 bytes each; checksum of all that follows and of these numbers: 8 bytes; the length of every part, 4 bytes
    each; the note (JSON: few words that both ends must know); the parts (downloads and uploads as `messages.wire`
    writes them)
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any

from ownview.base.display.shown import one_line
from ownview.base.errors import MessageError
from ownview.base.json_text import parse_json
from ownview.messages.limits import LONGEST_LINE, LONGEST_MESSAGE, LONGEST_QUESTION, MOST_PARTS

VERSION = 1
_HEAD = "<3sBB3x4I8s"
_MAGIC = b"OVP"


class Kind(IntEnum):
    """What a message asks for; its answer has the same kind, or REFUSED."""

    HELLO = 1
    """Who are you, and how many users do you have?"""
    TERMS = 2
    """This is what we agree on, and these are your users' identities."""
    WORK = 3
    """Work on a round with these users."""
    RESULT = 4
    """This is what the server has after a round."""
    MEASURE = 5
    """How good are the recommendations? Sums of metrics come back."""
    KEYS = 6
    """(masked sums) What are your users' public keys of this round?"""
    SHARES = 7
    """(masked sums) These are their neighbours; what do they seal for them?"""
    SHOW = 8
    """(masked sums) These have arrived, those have not; what lifts their masks?"""
    REFUSED = 9
    """(answers alone) It could not be done, and this is why, in one line."""
    DECLINED = 10
    """Some or all of your users cannot take part, and this is why, in one line."""
    AGREE = 11
    """(signed masks) These have arrived, those have not; do you sign that?"""


@dataclass(frozen=True)
class Envelope:
    """A message between a coordinator and a place, either way.

    Args:
        kind: what it is about.
        round: it belongs to; 0 where it belongs to none.
        counted: the last round of this place that the server counted, 0 before the first: what the place did since
            then has to be as if it had not been.
        note: few words that both ends must know.
        parts: downloads or uploads.
    """

    kind: Kind
    round: int = 0
    counted: int = 0
    note: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[bytes] = ()

    def pack(self) -> bytes:
        """Serialise; equal content gives equal bytes."""
        note = json.dumps(self.note, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        lengths = struct.pack(f"<{len(self.parts)}I", *map(len, self.parts))
        body = b"".join([lengths, note, *self.parts])
        numbers = int(self.kind), self.round, self.counted, len(note), len(self.parts)
        return struct.pack(_HEAD, _MAGIC, VERSION, *numbers, _checksum(numbers, body)) + body

    @classmethod
    def unpack(cls, data: bytes, longest_note: int = LONGEST_QUESTION) -> Envelope:
        """From bytes; raises `MessageError` where they are no such message, damaged, too long, or of another version.

        What the note says is for `deploy.envelopes.notes` to look at.

        Args:
            data: untrusted bytes.
            longest_note: bytes of the note at most.
        """
        if len(data) > LONGEST_MESSAGE:
            raise MessageError(f"a message of {len(data)} bytes; expected {LONGEST_MESSAGE} at most")
        try:
            magic, version, *numbers, checksum = struct.unpack_from(_HEAD, data)
        except struct.error as error:
            raise MessageError(f"a damaged message of {len(data)} bytes: {error}") from error
        if magic != _MAGIC:
            raise MessageError("no message between a coordinator and a place: it does not begin with OVP")
        if version != VERSION:
            raise MessageError(f"a message of version {version}; this program speaks version {VERSION}")
        body = data[struct.calcsize(_HEAD) :]
        if checksum != _checksum(numbers, body) or data[5:8] != bytes(3):
            raise MessageError(f"a damaged message of {len(data)} bytes: its checksum is wrong")
        kind, number, counted, length, count = numbers
        if length > longest_note or count > MOST_PARTS:
            found = f"a note of {length} bytes and {count} parts"
            raise MessageError(f"{found}; expected at most {longest_note} bytes and {MOST_PARTS} parts")
        try:
            lengths = struct.unpack_from(f"<{count}I", body)
            note = parse_json(body[4 * count : 4 * count + length])
            known = Kind(kind)
        except (struct.error, ValueError) as error:
            raise MessageError(f"a damaged message of {len(data)} bytes: {error}") from error
        place, parts = 4 * count + length, []
        for one in lengths:
            parts.append(body[place : place + one])
            place += one
        if place != len(body) or not isinstance(note, dict):
            raise MessageError(f"a damaged message of {len(data)} bytes: its parts have {place} of {len(body)}")
        return cls(known, number, counted, note, parts)


def refusal(reason: str, of: str) -> Envelope:
    """The answer to a message, by its digest, that could not be done."""
    return Envelope(Kind.REFUSED, note={"why": line_of(reason), "of": of})


def line_of(text: str) -> str:
    """One line of bounded length, fit to be sent, shown and logged: what a stranger wrote may be part of it."""
    line = one_line(text)
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 4] + " ..."


def kind_of(message: bytes) -> Kind:
    """The kind of a message that was packed here."""
    return Kind(message[4])


def digest_of(message: bytes) -> str:
    """Tells messages apart; an answer says by it which one it is to."""
    return blake2b(message, digest_size=16).hexdigest()


def _checksum(numbers: Sequence[int], body: bytes) -> bytes:
    return blake2b(struct.pack(f"<{len(numbers)}I", *numbers) + body, digest_size=8).digest()
