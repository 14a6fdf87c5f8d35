"""What the runs of a plan came to: means over seeds beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ownview.evaluation.groups import ActivityRange
from ownview.runs.batch import Task
from ownview.runs.cells import OverSeeds
from ownview.runs.folder import RunFolder
from ownview.studies.reproduction.plan import Line, Status
from ownview.studies.reproduction.published import Figure

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


@dataclass(frozen=True)
class Reached:
    """A published figure, what it is here, and what the same settings reach under the honest protocol."""

    figure: Figure
    here: OverSeeds | None = None
    honest: OverSeeds | None = None

    @property
    def difference(self) -> float | None:
        """Here minus published."""
        return None if self.here is None else self.here.mean - self.figure.value


@dataclass(frozen=True)
class Result:
    """A line of the plan after its runs."""

    line: Line
    status: Status
    reason: str
    comparisons: tuple[Reached, ...]


def results(lines: Sequence[Line], failures: Mapping[Path, str]) -> list[Result]:
    """Every line with its figures.

    Args:
        lines: the plan, carried out.
        failures: folders of runs that failed, and why.
    """
    return [_result(line, failures) for line in lines]


def _result(line: Line, failures: Mapping[Path, str]) -> Result:
    if line.status is not Status.PLANNED:
        return Result(line, line.status, line.reason, tuple(Reached(figure) for figure in line.figures))
    failed = next((failures[folder] for _, folder in line.here if folder in failures), "")
    failed_honestly = next((failures[folder] for _, folder in line.honest if folder in failures), "")
    comparisons = tuple(
        Reached(
            figure,
            None if failed else _measure(line, line.here, figure.metric),
            None if failed_honestly else _measure(line, line.honest, figure.metric),
        )
        for figure in line.figures
    )
    if failed:
        return Result(line, Status.FAILED, f"{line.one.data}: {failed}", comparisons)
    if any(one.here is None for one in comparisons):
        why = "no user is in the group" if line.setup is not None and line.setup.inactive else "the runs tell no cost"
        return Result(line, Status.NOT_MEASURED, why, comparisons)
    honestly = f"{line.one.data}, honest failed: {failed_honestly}" if failed_honestly else ""
    return Result(line, Status.MEASURED, honestly, comparisons)


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
