"""What the runs of a plan came to: means over seeds beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from ownview.evaluation.groups import ActivityRange
from ownview.runs.batch import Task
from ownview.runs.cells import OverSeeds
from ownview.runs.folder import RunFolder
from ownview.studies.reproduction.plan import Line, Status

_MEBIBYTE = 2**20
"""The paper's MB: 1,683 vectors of 16 four-byte numbers are its 0.1027."""

_COSTS: dict[str, tuple[float, tuple[str, ...]]] = {
    "client MB": (_MEBIBYTE, ("declared.client_bytes", "client_bytes")),
    "server MB": (_MEBIBYTE, ("declared.server_bytes_with_uploads", "server_bytes")),
    "max client + server s": (1.0, ("measured.seconds.round", "round_seconds")),
}
"""By metric: what a run's cost is divided by, and where it stands in cost.json or, failing that, in the result.

The paper counts declared parameters, and a server that stores the upload of every client.
"""

_HELD_OUT = 2
"""Interactions of a user that are not for training: one validates, one tests."""


def results(lines: Sequence[Line], failures: Mapping[Path, str]) -> list[Line]:
    """Every line with its figures.

    Args:
        lines: the plan, carried out.
        failures: folders of runs that failed, and why.
    """
    return [_result(line, failures) if line.status is Status.PLANNED else line for line in lines]


def _result(line: Line, failures: Mapping[Path, str]) -> Line:
    failed, failed_honestly = (
        next((failures[folder] for _, folder in runs if folder in failures), "") for runs in (line.here, line.honest)
    )
    reached = tuple(
        replace(
            one,
            here=None if failed else _measure(line, line.here, one.figure.metric),
            honest=None if failed_honestly else _measure(line, line.honest, one.figure.metric),
        )
        for one in line.reached
    )
    status, reason = Status.MEASURED, ""
    if failed:
        status, reason = Status.FAILED, f"{line.one.data}: {failed}"
    elif any(one.here is None for one in reached):
        in_group = line.setup is not None and line.setup.inactive
        status, reason = Status.NOT_MEASURED, "no user is in the group" if in_group else "the runs tell no cost"
    elif failed_honestly:
        reason = f"{line.one.data}, honest failed: {failed_honestly}"
    return replace(line, reached=reached, status=status, reason=reason)


def _measure(line: Line, runs: Sequence[Task], metric: str) -> OverSeeds | None:
    inactive = None if line.setup is None else line.setup.inactive
    values = [_value(RunFolder(folder), metric, inactive) for _, folder in runs]
    known = tuple(value for value in values if value is not None)
    return OverSeeds(known) if known and len(known) == len(values) else None


def _value(folder: RunFolder, metric: str, inactive: ActivityRange | None) -> float | None:
    result = folder.read_result()
    if metric in _COSTS:
        unit, names = _COSTS[metric]
        told = {**result.get("cost", {}), **folder.read_cost()}
        known = [value for name in names if (value := _at(told, name)) is not None]
        return float(known[0]) / unit if known else None
    return float(result["test"][metric]) if inactive is None else _mean_of_group(folder, metric, inactive)


def _at(values: Any, name: str) -> Any:
    """The value under a name such as measured.seconds.round, or None."""
    for part in name.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _mean_of_group(folder: RunFolder, metric: str, inactive: ActivityRange) -> float | None:
    """Mean over users with so many interactions; None without any."""
    fewest, below = inactive
    users = folder.read_users()
    trained = map(int, users["training_interactions"])
    values = [
        float(value)
        for value, number in zip(users[metric], trained, strict=True)
        if fewest <= number + _HELD_OUT < below
    ]
    return mean(values) if values else None
