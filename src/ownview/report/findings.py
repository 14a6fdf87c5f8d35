"""What a reader must know before the numbers: the audit's findings on every protocol, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ownview.evaluation.findings import Finding, by_rule
from ownview.evaluation.protocol import Protocol
from ownview.report.reading import SeenRun


def findings(protocol: Protocol, name: str, runs: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """Findings on one dataset and protocol: probe, whether it fires, a sentence, and where it comes from.

    They are taken from audit.json of one of the runs, which comparisons write. Where none has it, the protocol's
    settings tell what they can.
    """
    measured = next((run.findings for run in runs if run.findings), None)
    source = "protocol" if measured is None else "audit.json"
    found = [_plain(one, source) for one in measured or by_rule(protocol)]
    prints = {run.provenance.get("data", {}).get("fingerprint") for run in runs} - {None}
    if len(prints) > 1:
        sentence = f"the runs under protocol {name} were made from {len(prints)} different versions of the data"
        found.append({"probe": "data", "fires": True, "sentence": sentence, "source": "provenance"})
    return sorted(found, key=lambda one: not one["fires"])


def _plain(finding: Finding, source: str) -> dict[str, Any]:
    return {"probe": finding.probe, "fires": finding.fires, "sentence": finding.sentence, "source": source}
