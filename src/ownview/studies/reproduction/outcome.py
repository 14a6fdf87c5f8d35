"""What the runs of a plan came to: means over seeds beside the published figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ownview.base.errors import OutputError
from ownview.runs.batch import Task
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
class Measure:
    """A metric over seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over seeds."""
        return mean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """A published figure, what it is here, and what the same settings reach under the honest protocol."""

    figure: Figure
    here: Measure | None = None
    honest: Measure | None = None

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
    comparisons: tuple[Comparison, ...]


def results(lines: Sequence[Line], failures: Mapping[Path, str]) -> list[Result]:
    """Every line with its figures.

    Args:
        lines: the plan, carried out.
        failures: folders of runs that failed, and why.
    """
    return [_result(line, failures) for line in lines]


def _result(line: Line, failures: Mapping[Path, str]) -> Result:
    if line.status is not Status.PLANNED:
        return Result(line, line.status, line.reason, tuple(Comparison(figure) for figure in line.figures))
    failed = next((failures[folder] for _, folder in line.here if folder in failures), "")
    failed_honestly = next((failures[folder] for _, folder in line.honest if folder in failures), "")
    comparisons = tuple(
        Comparison(
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


def _measure(line: Line, runs: Sequence[Task], metric: str) -> Measure | None:
    inactive = None if line.setup is None else line.setup.inactive
    values = [_value(RunFolder(folder), metric, inactive) for _, folder in runs]
    known = tuple(value for value in values if value is not None)
    return Measure(known) if known and len(known) == len(values) else None


def _value(folder: RunFolder, metric: str, inactive: tuple[int, int] | None) -> float | None:
    result = folder.read_result()
    if metric in _COSTS:
        unit, names = _COSTS[metric]
        told = {**result.get("cost", {}), **_cost_file(folder)}
        known = [value for name in names if (value := _at(told, name)) is not None]
        return float(known[0]) / unit if known else None
    return float(result["test"][metric]) if inactive is None else _mean_of_group(folder.path, metric, inactive)


def _cost_file(folder: RunFolder) -> dict[str, Any]:
    path = folder.path / "cost.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise OutputError(f"{path}: is damaged: {error}; remove the run's folder to run it again") from None


def _at(values: Any, name: str) -> Any:
    """The value under a name such as measured.seconds.round, or None."""
    for part in name.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _mean_of_group(folder: Path, metric: str, inactive: tuple[int, int]) -> float | None:
    """Mean over users with at least the first and fewer than the second number of interactions; None without any."""
    low, high = inactive
    with (folder / "users.csv").open(encoding="utf-8", newline="") as lines:
        values = [
            float(user[metric])
            for user in csv.DictReader(lines)
            if low <= int(user["training_interactions"]) + _HELD_OUT < high
        ]
    return mean(values) if values else None
