"""What a probe found: a sentence for people, values for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ownview.evaluation.protocol import Protocol

VERSION = 7
"""Of the probes. Raised whenever one of them would find something else; findings kept from older ones are made anew."""


@dataclass(frozen=True)
class Finding:
    """What a probe found. `fires`: numbers measured this way need the sentence beside them."""

    probe: str
    fires: bool
    sentence: str
    values: dict[str, float | str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.probe, self.sentence))

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Finding:
        """From plain values."""
        return cls(str(values["probe"]), bool(values["fires"]), str(values["sentence"]), dict(values["values"]))


def fired(findings: Iterable[Finding]) -> list[Finding]:
    """Those that a table must show."""
    return [finding for finding in findings if finding.fires]


def by_rule(protocol: Protocol) -> list[Finding]:
    """What a protocol's settings alone show, where the data is not here to be probed."""
    leaks = protocol.negatives_avoid == "known"
    sentence = (
        "held-out items never serve as training negatives, so a model can find them by memory alone; "
        "numbers measured with it say little about preference (told by its settings, not measured on this data)"
        if leaks
        else "held-out items are drawn as training negatives like all others (told by its settings)"
    )
    leak = Finding("leak", leaks, f"under protocol {protocol.name} {sentence}", {"told_by": "settings"})
    return [leak, selection_mark(protocol)]


def selection_mark(protocol: Protocol) -> Finding:
    """Whether the round is chosen on test."""
    on_test = protocol.selection == "test"
    sentence = f"the round is chosen on {protocol.selection}" + ("; test figures are its best case" if on_test else "")
    return Finding("selection", on_test, sentence, {"selection": protocol.selection})
