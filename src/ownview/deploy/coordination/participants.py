"""The log of participants: one line a counted round, JSON. With it a simulation can do the same again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ownview.base.files import append_bounded, write_text

MOST_OF_LOG = 2**26
"""Bytes of the log; of a longer one the older half goes, and a simulation can do again what is left no more."""


@dataclass(frozen=True)
class CountedRound:
    """A round that was counted.

    Args:
        round: its number.
        counted: identities by place whose uploads are in the sums.
        asked: identities by place that were asked.
        refused: by place, why it did not do what it was asked for.
        notes: by place, its warnings.
        resent: messages that were sent again.
        seconds: from the first message to the checkpoint.
    """

    round: int
    counted: Mapping[str, Sequence[int]]
    asked: Mapping[str, Sequence[int]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    resent: int = 0
    seconds: float = 0.0

    @property
    def clients(self) -> list[int]:
        """Identities of all that were counted, ascending."""
        return sorted(identity for mine in self.counted.values() for identity in mine)


class ParticipantLog:
    """Lines in a file.

    Args:
        file: made with the first line.
        done: rounds that a checkpoint knows of; lines of later ones were written just before a kill, and go.
    """

    def __init__(self, file: Path, done: int) -> None:
        self.file = file
        kept = [one for one in read_log(file) if one.round <= done]
        if file.is_file():
            write_text(file, "".join(_line(one) + "\n" for one in kept), private=True)

    def add(self, one: CountedRound) -> None:
        """Write a round down."""
        append_bounded(self.file, _line(one), MOST_OF_LOG)


def read_log(file: Path) -> list[CountedRound]:
    """Every counted round; a line that a kill cut short, also within a letter, is passed over."""
    if not file.is_file():
        return []
    found = []
    with file.open("rb") as lines:
        for line in lines:
            try:
                found.append(CountedRound(**json.loads(line)))
            except (ValueError, TypeError):
                continue
    return found


def _line(one: CountedRound) -> str:
    return json.dumps(asdict(one), ensure_ascii=False)
