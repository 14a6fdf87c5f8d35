"""What a reader must know before the numbers: the audit's findings on every protocol, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ownview.evaluation.probes import selection_mark
from ownview.evaluation.protocol import Protocol
from ownview.report.reading import SeenRun


def findings(protocol: Protocol, name: str, runs: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """Findings on one dataset and protocol: probe, whether it fires, a sentence, and where it comes from.

    Measured ones are taken from audit files in or next to the run folders. The leak follows from the protocol where no
    file tells it, and the selection always does.
    """
    measured = {one["probe"]: one for one in _stored(protocol.name, runs)}
    found = [measured.pop("leak", None) or _leak_by_rule(protocol, name)]
    selection = selection_mark(protocol).to_dict()
    found += [_plain(selection, "protocol")]
    measured.pop("selection", None)
    found += measured.values()
    prints = {run.provenance.get("data", {}).get("fingerprint") for run in runs} - {None}
    if len(prints) > 1:
        sentence = f"the runs under protocol {name} were made from {len(prints)} different versions of the data"
        found.append({"probe": "data", "fires": True, "sentence": sentence, "source": "provenance"})
    return sorted(found, key=lambda one: not one["fires"])


def _stored(protocol: str, runs: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """A run's own findings, then those of files next to it, which win."""
    return [
        _plain(finding, audit.get("source", "audit"))
        for run in runs
        for audit in run.audits
        if audit.get("protocol") == protocol
        for finding in audit["findings"]
        if {"probe", "fires", "sentence"} <= set(finding)
    ]


def _leak_by_rule(protocol: Protocol, name: str) -> dict[str, Any]:
    leaks = protocol.negatives_avoid == "known"
    sentence = (
        f"under protocol {name} held-out items are never drawn as training negatives, so a model that only remembers "
        "what it was shown finds them; numbers measured with it say little about preference"
        if leaks
        else f"under protocol {name} a held-out item may be drawn as a training negative like any other"
    )
    return {"probe": "leak", "fires": leaks, "sentence": sentence, "source": "protocol"}


def _plain(finding: dict[str, Any], source: str) -> dict[str, Any]:
    return {**{name: finding[name] for name in ("probe", "fires", "sentence")}, "source": source}
