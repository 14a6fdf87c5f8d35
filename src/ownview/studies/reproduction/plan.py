"""From published rows to experiments: what can be run here, under which name it is kept, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ownview.config.settings import declared
from ownview.data.catalog import entry_of, find, how_to_get
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.runs.batch import Task
from ownview.runs.experiment import Experiment
from ownview.studies.grid import each_once, lacking, task
from ownview.studies.reproduction.published import Figure
from ownview.studies.reproduction.settings import PaperSettings, Setup


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
class Line:
    """A row of a published table on one dataset, and the runs it needs: one a seed.

    Args:
        figures: one a metric.
        status: planned, or why there are no runs.
        reason: that in words.
        setup: settings and protocol; None where none are written.
        here: runs as the paper measured.
        honest: the same under the honest protocol.
    """

    figures: tuple[Figure, ...]
    status: Status
    reason: str = ""
    setup: Setup | None = None
    here: tuple[Task, ...] = ()
    honest: tuple[Task, ...] = ()

    @property
    def one(self) -> Figure:
        """Any of its figures: paper, table, data and method are the same for all."""
        return self.figures[0]


def plan(figures: Iterable[Figure], settings: PaperSettings, options: Options) -> list[Line]:
    """A line for every row of every table on every dataset, in the figures' order."""
    grouped: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        grouped.setdefault((figure.table, figure.data, figure.method), []).append(figure)
    return [_line(tuple(group), settings.setup(group[0]), options) for group in grouped.values()]


def tasks(lines: Iterable[Line]) -> list[Task]:
    """Every run once, however many rows need it."""
    return each_once(one for line in lines for one in (*line.here, *line.honest))


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


def _line(figures: tuple[Figure, ...], setup: Setup | None, options: Options) -> Line:
    if setup is None:
        return Line(figures, Status.NOT_AVAILABLE, "no settings yet")
    if lacking := missing(setup):
        return Line(figures, Status.NOT_AVAILABLE, f"needs {lacking}", setup)
    if find(setup.dataset, options.data_dir) is None:
        how = how_to_get(entry_of(setup.dataset))
        return Line(figures, Status.NO_DATA, f"{setup.dataset}: {how}", setup)
    ranked = figures[0].candidates != "-"
    return Line(
        figures,
        Status.PLANNED,
        setup=setup,
        here=_seeds(setup, setup.protocol, options),
        honest=_seeds(setup, setup.honest, options) if options.honest and ranked else (),
    )


def _seeds(setup: Setup, protocol: Protocol, options: Options) -> tuple[Task, ...]:
    asked = experiment(setup, protocol)
    return tuple(task(asked, options.runs, seed, options.rounds, options.device) for seed in range(options.seeds))
