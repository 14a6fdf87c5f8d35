"""The numbers of the table: mean over seeds, how sure it is over users, and what it cannot be told apart from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from ownview.data.interactions import FloatArray
from ownview.evaluation.statistics import bootstrap_interval
from ownview.report.reading import SeenRun

WITH_INTERVAL = ("HR@10", "NDCG@10")

Alike = Callable[[Mapping[str, FloatArray]], Mapping[str, Sequence[str]]]
"""The rule for "cannot be told apart", where paired tests come in.

Takes, for one dataset, protocol and metric, by variant the values of the same users [k] (mean over seeds); returns by
variant the labels of those it cannot be told apart from. The page marks them with ≈. Without a rule nothing is marked.
"""


def cells(runs: Sequence[SeenRun]) -> dict[str, dict[str, Any]]:
    """By metric: mean and spread over seeds, and for some a 95 % interval over users.

    The interval is that of users' means over seeds, users drawn with replacement; where users.csv is missing, the mean
    of the runs' own intervals.
    """
    found: dict[str, dict[str, Any]] = {}
    for metric in runs[0].result["test"]:
        values = [run.result["test"][metric] for run in runs if metric in run.result["test"]]
        cell: dict[str, Any] = {"mean": mean(values), "spread": stdev(values) if len(values) > 1 else None}
        if metric in WITH_INTERVAL:
            cell["low"], cell["high"] = _interval(runs, metric)
            cell["alike"] = []
        found[metric] = cell
    return found


def user_means(runs: Sequence[SeenRun], metric: str) -> FloatArray | None:
    """[k] each user's mean over seeds; None where a run lacks them or ranked other users."""
    columns = [run.per_user.get(metric) for run in runs]
    if any(column is None for column in columns) or len({run.users for run in runs}) != 1:
        return None
    return np.asarray(np.mean([column for column in columns if column is not None], axis=0))


def mark_alike(results: Mapping[str, Mapping[str, Any]], runs: Mapping[str, Sequence[SeenRun]], rule: Alike) -> None:
    """Let `rule` fill the `alike` of every cell of one dataset and protocol.

    Args:
        results: by variant's label, with its `cells`.
        runs: by variant's label.
        rule: see `Alike`; asked only about variants whose runs ranked the same users.
    """
    for metric in WITH_INTERVAL:
        by_users: dict[tuple[str, ...], dict[str, FloatArray]] = {}
        for label, mine in runs.items():
            values = user_means(mine, metric)
            if values is not None:
                by_users.setdefault(mine[0].users, {})[label] = values
        for comparable in by_users.values():
            for label, others in rule(comparable).items():
                results[label]["cells"][metric]["alike"] = list(others)


def _interval(runs: Sequence[SeenRun], metric: str) -> tuple[float, float]:
    values = user_means(runs, metric)
    if values is not None:
        return bootstrap_interval(values)
    lows, highs = zip(*(run.result["interval_95"][metric] for run in runs), strict=True)
    return mean(lows), mean(highs)
