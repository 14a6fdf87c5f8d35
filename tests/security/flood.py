"""Hostile messages without end, drawn from a seeded source of chance: some are no messages, some are and lie."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

from ownview.deploy.envelopes.envelope import Envelope, Kind
from tests.fuzz.harm import spoil_value, spoilt_bytes
from tests.security.hostile import raw

NUMBERS = (b"Infinity", b"-Infinity", b"NaN", b"1e999", b"-1", b"1e30", b"9" * 5000, b"18446744073709551616", b"0.5")
FLOATS = (float("nan"), float("inf"), -1e30, 1e36, 1e9, -0.0, 5e-324)


def damaged(sound: bytes, chance: random.Random) -> bytes:
    """Bytes that are no message any more, whatever the wounds are."""
    spoilt = spoilt_bytes(sound, chance)
    return spoilt if spoilt != sound else sound[:-1]


def hostile(sound: Envelope, chance: random.Random) -> bytes:
    """A message with a right checksum in which something is not as it was."""
    note, parts = json.dumps(dict(sound.note)).encode(), list(sound.parts)
    kind, number, counted = int(sound.kind), sound.round, sound.counted
    match chance.randrange(9):
        case 0:
            note = spoilt_bytes(note, chance)
        case 1:
            said: Any = {"": dict(sound.note)}
            spoil_value(said, chance)
            note = json.dumps(said.get("")).encode()
        case 2:
            note = _with_number(note, chance)
        case 3:
            depth = chance.choice((10, 900, 5000, 30_000))
            note = chance.choice((b"[", b'{"a":')) * depth
        case 4:
            kind = chance.choice((*map(int, Kind), 0, 77, 255))
        case 5:
            number, counted = (chance.choice((0, 1, number, 2**31, 2**32 - 1)) for _ in range(2))
        case 6 if parts:
            place = chance.randrange(len(parts))
            parts[place] = spoilt_bytes(parts[place], chance) if parts[place] else b"OV"
        case 7 if parts:
            parts[chance.randrange(len(parts))] = _with_float(chance.choice(parts), chance)
        case _:
            parts = chance.choice(([], parts[1:], parts * 2, [*parts, b""], [b"\0" * 1000] * 3, [b""] * 5000))
    return raw(kind, note, parts, number, counted)


def _with_number(note: bytes, chance: random.Random) -> bytes:
    """The note with a number that is none, or none for it, in the place of one of its digits."""
    places = [place for place, one in enumerate(note) if chr(one).isdigit()] or [0]
    place = chance.choice(places)
    return note[:place] + chance.choice(NUMBERS) + note[place + 1 :]


def _with_float(part: bytes, chance: random.Random) -> bytes:
    """A part with another number in the place of eight of its bytes."""
    if len(part) < 40:
        return part[:-1]
    place = chance.randrange(32, len(part) - 7)
    return part[:place] + struct.pack("<d", chance.choice(FLOATS)) + part[place + 8 :]
