"""The numbers of the table: mean over seeds, and how sure it is over users."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from ownview.evaluation.comparison import UserValues
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.statistics import bootstrap_interval
from ownview.report.reading import SeenRun


def cells(runs: Sequence[SeenRun]) -> dict[str, dict[str, Any]]:
    """By metric: mean and spread over seeds, and for some a 95 % interval over users.

    The interval is that of users' means over seeds, users drawn with replacement; where users.csv is missing, the mean
    of the runs' own intervals.
    """
    found: dict[str, dict[str, Any]] = {}
    for metric in runs[0].result["test"]:
        values = [run.result["test"][metric] for run in runs if metric in run.result["test"]]
        cell: dict[str, Any] = {"mean": mean(values), "spread": stdev(values) if len(values) > 1 else None}
        if metric in HEADLINE:
            cell["low"], cell["high"] = _interval(runs, metric)
            cell["alike"] = []
        found[metric] = cell
    return found


def user_values(runs: Sequence[SeenRun], metric: str) -> UserValues | None:
    """Of runs that are seeds of each other; None where one lacks them or asked its users otherwise."""
    columns = [run.per_user.get(metric) for run in runs]
    if any(column is None for column in columns) or len({run.asked for run in runs}) != 1:
        return None
    return UserValues(runs[0].asked, np.array(columns, dtype=float))


def _interval(runs: Sequence[SeenRun], metric: str) -> tuple[float, float]:
    values = user_values(runs, metric)
    if values is not None:
        return bootstrap_interval(values.by_user)
    lows, highs = zip(*(run.result["interval_95"][metric] for run in runs), strict=True)
    return mean(lows), mean(highs)
