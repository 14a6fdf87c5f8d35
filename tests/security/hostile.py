"""An enrolled place that answers as it likes, beside honest ones; and messages that Ownview never packs."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind, _checksum, digest_of
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Answering
from tests.deploy.in_process import InProcess
from tests.deploy.world import agreement, write_homes

EVIL = "zed"
"""It comes last, so that the identities of honest users are what they are without it."""
BRIEF = CoordinatorSettings(resend=0.05, greeting=0.05, deadline=0.05)

Change = Callable[[Envelope, str], bytes]
"""The honest answer, and the digest of the question -> the answer that is sent."""


def raw(kind: int, note: bytes, parts: Sequence[bytes] = (), round: int = 0, counted: int = 0) -> bytes:  # noqa: A002
    """A message with a right checksum and any bytes for a note."""
    body = b"".join([struct.pack(f"<{len(parts)}I", *map(len, parts)), note, *parts])
    numbers = kind, round, counted, len(note), len(parts)
    return struct.pack("<3sBB3x4I8s", b"OVP", 1, *numbers, _checksum(numbers, body)) + body


def noted(answer: Envelope, **changed: Any) -> bytes:
    """An answer with other words in its note; None takes one out."""
    note = {name: value for name, value in {**answer.note, **changed}.items() if value is not None}
    return raw(answer.kind, json.dumps(note).encode(), answer.parts, answer.round, answer.counted)


def with_parts(answer: Envelope, parts: Sequence[bytes]) -> bytes:
    """An answer with other parts."""
    return Envelope(answer.kind, answer.round, answer.counted, answer.note, parts).pack()


class Hostile:
    """A place that does all that an honest one does, and changes its answers of one kind."""

    def __init__(self, home: Path, kind: Kind, change: Change) -> None:
        self.place, self.kind, self.change = Place(home), kind, change
        self.sent = 0

    def answer(self, message: bytes) -> bytes:
        honest = Envelope.unpack(self.place.answer(message))
        if honest.kind is not self.kind:
            return honest.pack()
        self.sent += 1
        return self.change(honest, digest_of(message))


def after_rounds(
    folder: Path, evil: Mapping[str, tuple[Kind, Change]] | None = None, rounds: int = 2, **agreed: Any
) -> tuple[Coordinator, list[str]]:
    """A coordinator of two honest places, and perhaps hostile ones, after some rounds; and what it said."""
    names = ("east", "north", *(evil or ()))
    homes, said = write_homes(folder, names, users=2), list[str]()
    places: dict[str, Answering] = {name: Place(homes[name]) for name in ("east", "north")}
    places |= {name: Hostile(homes[name], *how) for name, how in (evil or {}).items()}
    coordinator = Coordinator(agreement(**agreed), InProcess(places), folder / "server", BRIEF, said.append)
    for number in range(1, rounds + 1):
        coordinator.round(number)
    return coordinator, said
