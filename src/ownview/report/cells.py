"""The numbers of the table: mean over seeds, and how sure it is over users."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from ownview.data.interactions import FloatArray
from ownview.evaluation.statistics import bootstrap_interval
from ownview.report.reading import SeenRun

WITH_INTERVAL = ("HR@10", "NDCG@10")


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


def _interval(runs: Sequence[SeenRun], metric: str) -> tuple[float, float]:
    values = user_means(runs, metric)
    if values is not None:
        return bootstrap_interval(values)
    lows, highs = zip(*(run.result["interval_95"][metric] for run in runs), strict=True)
    return mean(lows), mean(highs)
