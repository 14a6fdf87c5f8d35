"""From published rows to experiments, and what came of them: means over seeds beside the published figures.

A line says what can be run here, in which folders it is kept, and why the rest cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from ownview.config.settings import declared
from ownview.data.datasets.catalog import entry_of, find, how_to_get
from ownview.evaluation.groups import ActivityRange
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.runs.batch import Task
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.table import OverSeeds, grouped
from ownview.studies.grid import each_once, lacking, task
from reproduction.papers import Figure, PaperSettings, Setup


class Status(StrEnum):
    """How far a row has come."""

    PLANNED = "planned"
    MEASURED = "measured"
    NOT_AVAILABLE = "not available yet"
    NO_DATA = "data not found"
    FAILED = "failed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Options:
    """What a person may choose.

    Args:
        seeds: 0, 1, ... up to this number.
        rounds: instead of the paper's.
        honest: whether the same settings are run under the honest protocol too.
        device: cpu, cuda or auto.
        data_dir: where datasets are.
        runs: the folder the runs go to.
    """

    runs: Path
    seeds: int = 3
    rounds: int | None = None
    honest: bool = True
    device: str = "auto"
    data_dir: Path | None = None


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
class Line:
    """A row of a published table on one dataset, and the runs it needs: one a seed.

    Args:
        reached: one a metric.
        status: planned, how it came out, or why there are no runs.
        reason: that in words.
        setup: settings and protocol; None where none are written.
        here: runs as the paper measured.
        honest: the same under the honest protocol.
    """

    reached: tuple[Reached, ...]
    status: Status
    reason: str = ""
    setup: Setup | None = None
    here: tuple[Task, ...] = ()
    honest: tuple[Task, ...] = ()

    @property
    def one(self) -> Figure:
        """Any of its figures: paper, table, data and method are the same for all."""
        return self.reached[0].figure

    @property
    def metrics(self) -> list[str]:
        """Of its figures."""
        return [one.figure.metric for one in self.reached]

    @property
    def runs(self) -> tuple[Task, ...]:
        """Under both protocols."""
        return (*self.here, *self.honest)


def plan(figures: Iterable[Figure], settings: PaperSettings, options: Options) -> list[Line]:
    """A line for every row of every table on every dataset, in the figures' order."""
    rows = grouped(((figure.table, figure.data, figure.method), Reached(figure)) for figure in figures)
    return [_line(tuple(group), settings.setup(group[0].figure), options) for group in rows.values()]


def tasks(lines: Iterable[Line]) -> list[Task]:
    """Every run once, however many rows need it."""
    return each_once(one for line in lines for one in line.runs)


def experiment(setup: Setup, protocol: Protocol) -> Experiment:
    """What a row asks for, as an experiment."""
    made = Experiment.from_dict({**setup.experiment, "data": setup.dataset}, "row")
    return replace(made, protocol=protocol)


def missing(setup: Setup) -> str:
    """What the row needs and this version does not have, in a few words; empty where it has everything."""
    if found := lacking([setup.experiment]):
        return " ".join(found[0])
    options = {one.name for one in declared(FederationOptions)}
    return next(
        (f"federation setting {name}" for name in setup.experiment.get("federation", {}) if name not in options), ""
    )


def _line(group: tuple[Reached, ...], setup: Setup | None, options: Options) -> Line:
    if setup is None:
        return Line(group, Status.NOT_AVAILABLE, "no settings yet")
    if lacking := missing(setup):
        return Line(group, Status.NOT_AVAILABLE, f"needs {lacking}", setup)
    if find(setup.dataset, options.data_dir) is None:
        how = how_to_get(entry_of(setup.dataset))
        return Line(group, Status.NO_DATA, f"{setup.dataset}: {how}", setup)
    ranked = group[0].figure.candidates != "-"
    honest = _seeds(setup, setup.honest, options) if options.honest and ranked else ()
    return Line(group, Status.PLANNED, "", setup, _seeds(setup, setup.protocol, options), honest)


def _seeds(setup: Setup, protocol: Protocol, options: Options) -> tuple[Task, ...]:
    asked = experiment(setup, protocol)
    return tuple(task(asked, options.runs, seed, options.rounds, options.device) for seed in range(options.seeds))


_MEBIBYTE = 2**20
"""The paper's MB: 1,683 vectors of 16 four-byte numbers are its 0.1027."""

COSTS: dict[str, tuple[float, tuple[str, ...]]] = {
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
    values = [measured_value(RunFolder(folder), metric, inactive) for _, folder in runs]
    known = tuple(value for value in values if value is not None)
    return OverSeeds(known) if known and len(known) == len(values) else None


def measured_value(folder: RunFolder, metric: str, inactive: ActivityRange | None) -> float | None:
    """One figure of a finished run, or of a group of its users; None where it was not measured, or nobody is in it."""
    result = folder.read_result()
    if metric in COSTS:
        unit, names = COSTS[metric]
        costs = {**result.get("cost", {}), **folder.read_note("cost")}
        known = [value for name in names if (value := _at(costs, name)) is not None]
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
    numbers = np.array(users["training_interactions"], int) + _HELD_OUT
    values = np.array(users[metric], float)[(fewest <= numbers) & (numbers < below)]
    return float(values.mean()) if len(values) else None
