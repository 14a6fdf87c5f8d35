"""Runs become cells of a table: mean and spread over seeds, interval over users, mark against the column's best.

Every table of runs is made here: that of `ownview compare`, of a suite, of a reproduction, and of the report. A row is
a method under one protocol; its runs differ in nothing but the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, TypeVar

import numpy as np

from ownview.evaluation.comparison import Cell, Mark, UserValues, compare_columns
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.protocol import Protocol
from ownview.registry import BASELINES
from ownview.runs.run import Run

RowKey = tuple[str, str]
"""What the table calls the row, and the protocol's name."""

CellKey = tuple[str, str, str]
"""The same, and the metric."""

AnyRun = TypeVar("AnyRun", bound=Run)


@dataclass(frozen=True)
class OverSeeds:
    """A number of every seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over seeds."""
        return mean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if self.spread is None else f" ± {self.spread:.4f}")

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"mean": self.mean, "standard_deviation": self.spread, "values": list(self.values)}


def rows_of(runs: Iterable[tuple[RowKey, AnyRun]]) -> dict[RowKey, list[AnyRun]]:
    """Seeds by row, in the order rows first come."""
    rows: dict[RowKey, list[AnyRun]] = {}
    for key, run in runs:
        rows.setdefault(key, []).append(run)
    return rows


def compared(rows: Mapping[RowKey, Sequence[Run]]) -> dict[CellKey, Cell]:
    """Every row of one dataset compared with the best of its column, p corrected over the whole table.

    The order is by column, then by row. Rows whose seeds ranked different users are left out.
    """
    columns: dict[tuple[str, str], dict[str, UserValues]] = {}
    for (label, protocol), seeds in rows.items():
        for metric, values in (user_values(seeds, HEADLINE) or {}).items():
            columns.setdefault((protocol, metric), {})[label] = values
    return {(cell.label, *column): cell for column, cells in compare_columns(columns).items() for cell in cells}


def averaged(label: str, results: Sequence[Mapping[str, Any]], metric: str) -> Cell:
    """The cell of a row that is not compared: its interval is the mean of its seeds' own.

    Args:
        label: of the row.
        results: of its seeds, as result.json and recorded suites have them.
        metric: one with an interval.
    """
    over = OverSeeds(tuple(one["test"][metric] for one in results))
    lows, highs = zip(*(one["interval_95"][metric] for one in results), strict=True)
    users = min(int(one["users_ranked"]) for one in results)
    return Cell(label, over.mean, over.spread, mean(lows), mean(highs), len(results), users, Mark.UNPAIRED)


def user_values(seeds: Sequence[Run], metrics: Sequence[str]) -> dict[str, UserValues] | None:
    """The metrics of one row, a value a seed and user; None where its seeds ranked different users.

    Users can be paired with those of another row where they are the same in the same order, with the same held-out
    items, under the same protocol (its name may differ). Cuts of one protocol are pooled: whoever is asked at several
    cuts counts at each.
    """
    cuts: dict[str, list[Run]] = {}
    for run in seeds:
        cuts.setdefault(run.experiment.protocol.name, []).append(run)
    parts = [_of_one_cut(runs, metrics) for _, runs in sorted(cuts.items())]
    if any(part is None for part in parts) or len({len(runs) for runs in cuts.values()}) > 1:
        return None
    there = [part for part in parts if part is not None]
    return {
        name: UserValues(
            tuple(one for part in there for one in part[name].asked),
            np.concatenate([part[name].values for part in there], axis=1),
            _is_yardstick(seeds[0]),
        )
        for name in metrics
    }


def _of_one_cut(seeds: Sequence[Run], metrics: Sequence[str]) -> dict[str, UserValues] | None:
    tables = [run.folder.read_users() for run in seeds]
    found = [_asked(run.experiment.protocol, table) for run, table in zip(seeds, tables, strict=True)]
    if any(one != found[0] for one in found[1:]):
        return None
    return {name: UserValues(found[0], np.array([table[name] for table in tables], dtype=float)) for name in metrics}


def _is_yardstick(run: Run) -> bool:
    return getattr(BASELINES.get(run.experiment.method), "yardstick", False)


def _asked(protocol: Protocol, table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What each user of users.csv was asked, after the protocol, so that rows of different ones are never paired."""
    settings = {name: value for name, value in protocol.values().items() if name != "name"}
    how = json.dumps(settings, sort_keys=True, default=list)
    return (how, *(f"{user}\x1f{item}" for user, item in zip(table["user"], table["held_out"], strict=True)))
