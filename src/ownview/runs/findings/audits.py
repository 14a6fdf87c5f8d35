"""Findings of probes about data and protocols of runs; made once, then cached in the run folders."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, OutputError, OwnviewError
from ownview.data.interactions import Interactions
from ownview.evaluation.findings import VERSION, Finding, by_rule
from ownview.evaluation.probes import ROUNDS, audit
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import Run
from ownview.runs.training.setup import load_data, split_data

_USERS = 400
"""Whom the leak probe of a comparison asks: seconds instead of minutes, and a leak is found all the same."""


def findings_of(
    runs: Sequence[Run], *, probe: bool = False, data_dir: Path | None = None
) -> dict[str, tuple[Finding, ...]]:
    """Findings by the name of the protocol, every pair of data and protocol looked at once.

    They are taken from audit.json of one of the runs. Where none has it, and `probe` asks for it and the data is here
    unchanged, it is made. Where `probe` is set, all their folders have it then. Otherwise the settings of the protocol
    show what they can.

    Args:
        runs: finished.
        probe: whether to probe what has not been; else only folders are read.
        data_dir: where datasets are.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str(_key(run.folder, run.experiment)), []).append(run)
    found: dict[str, dict[Finding, None]] = {}
    sources: dict[str, Interactions] = {}
    for group in groups.values():
        protocol = group[0].experiment.protocol
        measured = _kept_by_one(group) or (_probed(group, sources, data_dir) if probe else None)
        if probe and measured:
            keep_findings(group, measured)
        known = measured or by_rule(protocol)
        named = found.setdefault(protocol.name, {})
        named.update(dict.fromkeys(known))
    return {name: tuple(known) for name, known in found.items()}


def kept(folder: RunFolder, experiment: Experiment) -> list[Finding] | None:
    """What audit.json of a run says of its data under its protocol; None where there is none that still holds."""
    key, read = _key(folder, experiment), folder.read_note("audit")
    if {name: read.get(name) for name in key} == key:
        with contextlib.suppress(KeyError, TypeError, ValueError):  # a damaged file is as good as none
            return [Finding.of(one) for one in read["findings"]]
    return None


def _key(folder: RunFolder, experiment: Experiment) -> dict[str, Any]:
    """What findings hang on. Data without a fingerprint (its provenance is lost) goes by its name."""
    fingerprint = folder.read_provenance().get("data", {}).get("fingerprint", f"unknown: {experiment.data}")
    return {"probes": VERSION, "rounds": ROUNDS, "data": fingerprint, "protocol": experiment.protocol.plain()}


def _kept_by_one(group: Sequence[Run]) -> list[Finding] | None:
    found = (kept(run.folder, run.experiment) for run in group)
    return next((one for one in found if one), None)


def _probed(group: Sequence[Run], sources: dict[str, Interactions], data_dir: Path | None) -> list[Finding] | None:
    """None where the data is not here, has changed, or cannot be probed: a table must not fail for that."""
    experiment = group[0].experiment
    key = _key(group[0].folder, experiment)
    try:
        source = group[0].data
        if source is None:
            name = f"{experiment.data} {dict(experiment.columns)}"
            if name not in sources:
                sources[name] = load_data(experiment, data_dir)
            source = sources[name]
        split = split_data(experiment, source)
        if split.data.fingerprint() != key["data"]:
            raise DataError(f"{experiment.data}: has changed since the run")
        findings = audit(split, experiment.protocol, rounds=ROUNDS, most_users=_USERS)
    except OwnviewError:
        return None
    return findings


def keep_findings(runs: Sequence[Run], findings: Sequence[Finding]) -> None:
    """Put audit.json into the folders of runs on the same data and protocol, where it is missing."""
    for run in runs:
        if kept(run.folder, run.experiment) is None:
            key = _key(run.folder, run.experiment)
            with contextlib.suppress(OutputError):  # folders may be read-only; then it is made again next time
                run.folder.write_note("audit", {**key, "findings": [finding.to_dict() for finding in findings]})
