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
from ownview.runs.cells import OverSeeds
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
    grouped: dict[tuple[str, str, str], list[Reached]] = {}
    for figure in figures:
        grouped.setdefault((figure.table, figure.data, figure.method), []).append(Reached(figure))
    return [_line(tuple(group), settings.setup(group[0].figure), options) for group in grouped.values()]


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
