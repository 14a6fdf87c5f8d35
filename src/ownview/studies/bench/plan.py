"""From a suite to runs: which part of it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ownview.base.errors import DataError, SettingError, suggestion
from ownview.data.catalog import catalog, how_to_get, require_data_dir
from ownview.data.storage import find
from ownview.studies.bench.suite import Suite
from ownview.studies.grid import Planned, task


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


def plan(suite: Suite, part: Part, runs: Path, device: str = "auto") -> list[Planned]:
    """Every run once: by dataset, then by seed, so that what a stopped suite has can be compared."""
    names = {row.name: {row.name, str(row.experiment["method"])} for row in suite.rows}
    _require("--method", part.methods, set().union(*names.values()), suite)
    _require("--data", part.data, suite.data, suite)
    return [
        Planned(row.name, *task(suite.experiment(row, data, protocol), runs, seed, part.rounds, device))
        for data in suite.data
        if not part.data or data in part.data
        for seed in range(part.seeds or suite.seeds)
        for row in suite.rows
        if not part.methods or names[row.name] & set(part.methods)
        for protocol in suite.protocols
    ]


def require_data(planned: Sequence[Planned], data_dir: Path | None) -> None:
    """One error for all datasets that are not here."""
    require_data_dir(data_dir)
    names = dict.fromkeys(one.data for one in planned)
    absent = [name for name in names if name in catalog() and find(name, data_dir) is None]
    if absent:
        how = "; ".join(f"{name}: {how_to_get(catalog()[name])}" for name in absent)
        present = " ".join(f"--data {name}" for name in names if name not in absent)
        raise DataError(f"data not found: {how}" + (f"; or run the rest with {present}" if present else ""))


def _require(option: str, asked: Sequence[str], known: Collection[str], suite: Suite) -> None:
    for name in asked:
        if name not in known:
            raise SettingError(f"{option} {name}: not in suite {suite.name}{suggestion(name, known)}")
