"""From a suite to runs: which part of it is asked for, and the folder of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ownview.base.errors import DataError, SettingError, suggestion
from ownview.data.catalog import catalog, how_to_get
from ownview.data.storage import find
from ownview.runs.batch import Task
from ownview.runs.cache import folder_name
from ownview.runs.experiment import Experiment
from ownview.studies.bench.suite import Row, Suite


@dataclass(frozen=True)
class Part:
    """What is asked for of a suite; all of it where nothing is named.

    Args:
        methods: names of rows, or of their methods.
        data: datasets.
        seeds: instead of the suite's number.
        rounds: instead of the suite's.
    """

    methods: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    seeds: int | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Planned:
    """One run of the grid."""

    row: str
    data: str
    protocol: str
    seed: int
    experiment: Experiment
    folder: Path

    @property
    def task(self) -> Task:
        """For whoever carries it out."""
        return self.experiment, self.folder


def plan(suite: Suite, part: Part, runs: Path, device: str = "auto") -> list[Planned]:
    """Every run once: by dataset, then by seed, so that what a stopped suite has can be compared."""
    rows = [row for row in suite.rows if not part.methods or {row.name, row.layer["method"]} & set(part.methods)]
    names = {name for row in suite.rows for name in (row.name, str(row.layer["method"]))}
    _require("--method", part.methods, names, suite)
    _require("--data", part.data, suite.data, suite)
    data = [one for one in suite.data if not part.data or one in part.data]
    return [
        _planned(suite, row, one, protocol, seed, part.rounds, runs, device)
        for one in data
        for seed in range(part.seeds or suite.seeds)
        for row in rows
        for protocol in suite.protocols
    ]


def tasks(planned: Sequence[Planned]) -> list[Task]:
    """Every run once, however many rows mean the same."""
    return list({one.folder: one.task for one in planned}.values())


def require_data(planned: Sequence[Planned], data_dir: Path | None) -> None:
    """One error for all datasets that are not here."""
    if data_dir is not None and not data_dir.is_dir():
        raise DataError(f"{data_dir}: no such folder of datasets (--data-dir)")
    names = dict.fromkeys(one.data for one in planned)
    absent = [name for name in names if name in catalog() and find(name, data_dir) is None]
    if absent:
        how = "; ".join(f"{name}: {how_to_get(catalog()[name])}" for name in absent)
        present = " ".join(f"--data {name}" for name in names if name not in absent)
        raise DataError(f"data not found: {how}" + (f"; or run the rest with {present}" if present else ""))


def _require(option: str, asked: Sequence[str], known: Sequence[str] | set[str], suite: Suite) -> None:
    for name in asked:
        if name not in known:
            raise SettingError(f"{option} {name}: not in suite {suite.name}{suggestion(name, known)}")


def _planned(
    suite: Suite, row: Row, data: str, protocol: str, seed: int, rounds: int | None, runs: Path, device: str
) -> Planned:
    made = replace(suite.experiment(row, data, protocol, seed, rounds), device=device)
    return Planned(row.name, made.data_label(), made.protocol.name, seed, made, runs / folder_name(made))
