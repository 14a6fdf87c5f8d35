"""The numbers of the table: mean over seeds, how sure it is over users, and what the ≈ beside it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ownview.evaluation.comparison import Cell, Mark
from ownview.evaluation.metrics import HEADLINE
from ownview.report.reading import SeenRun
from ownview.runs.cells import CellKey, OverSeeds, RowKey, averaged, compared

PlainCells = dict[str, dict[str, Any]]
"""By metric, values for the page."""


def cells(rows: Mapping[RowKey, Sequence[SeenRun]]) -> dict[RowKey, PlainCells]:
    """The cells of one dataset's table: mean and spread over seeds, and for some metrics an interval and `alike`.

    The interval (95 %) is that of users' means over seeds; where users.csv is missing, the mean of the runs' own
    intervals. `alike` names the best where the row cannot be told apart from it and, for the
    best itself, all such rows: the test is that of `ownview compare` and `ownview bench`, corrected over the table.
    """
    known = compared({row: seeds for row, seeds in rows.items() if all(run.folder.has_users for run in seeds)})
    alike = _alike(known)
    return {
        row: {metric: _cell((*row, metric), seeds, known, alike) for metric in seeds[0].result["test"]}
        for row, seeds in rows.items()
    }


def _cell(
    key: CellKey, seeds: Sequence[SeenRun], known: Mapping[CellKey, Cell], alike: Mapping[CellKey, list[str]]
) -> dict[str, Any]:
    label, _, metric = key
    results = [run.result for run in seeds if metric in run.result["test"]]
    over = OverSeeds(tuple(one["test"][metric] for one in results))
    made = {"mean": over.mean, "spread": over.spread}
    if metric not in HEADLINE:
        return made
    cell = known.get(key) or averaged(label, results, metric)
    return {**made, "low": cell.low, "high": cell.high, "alike": alike.get(key, [])}


def _alike(known: Mapping[CellKey, Cell]) -> dict[CellKey, list[str]]:
    best = {(protocol, metric): label for (label, protocol, metric), one in known.items() if one.mark is Mark.BEST}
    found: dict[CellKey, list[str]] = {}
    for (label, protocol, metric), one in known.items():
        if one.mark is Mark.LEVEL:
            first = best[protocol, metric]
            found[label, protocol, metric] = [first]
            found.setdefault((first, protocol, metric), []).append(label)
    return found
