"""What the page says of attacks by servers and clients, where a comparison has looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ownview.reports.reading import Variant
from ownview.runs.findings.exposure import kept


def exposed(variants: Sequence[Variant], what: str) -> list[dict[str, Any]]:
    """One entry a method whose runs hold such a finding: its label, the finding, and what protected uploads."""
    found = []
    for variant in variants:
        runs = [run for each in variant.runs.values() for run in each]
        known = next(((run, finding) for run in runs if (finding := kept(run, what)) is not None), None)
        if known is not None:
            run, finding = known
            privacy = run.experiment.federation.privacy
            found.append({"label": variant.label, "privacy": privacy, **finding.to_dict()})
    return found
