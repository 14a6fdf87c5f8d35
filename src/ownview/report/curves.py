"""What happened round by round, mean over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ownview.evaluation.metrics import HEADLINE
from ownview.report.reading import SeenRun

MOST_POINTS = 200
"""Longer curves keep evenly spaced rounds, the first and the last among them."""


def curve(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Metrics and loss by round; None for models without rounds."""
    every = _shared_lines(runs)
    stage = "validation" if any("validation" in line for line in every[0]) else "test"
    lines = [[line for line in one if stage in line] for one in every]
    if len(lines[0]) < 2:
        return None
    kept = _kept(len(lines[0]))
    found: dict[str, Any] = {"stage": stage, "rounds": [lines[0][k]["round"] for k in kept]}
    for metric in HEADLINE:
        found[metric] = _means([[one[k][stage][metric] for k in kept] for one in lines])
    if all(line["loss"] is not None for one in lines for line in one):
        found["loss"] = _means([[one[k]["loss"] for k in kept] for one in lines])
    return found


def sparsity(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """By shared table and round the share of values that are 0, or below 0.001; None where nothing is shared."""
    lines = _shared_lines(runs)
    tables = lines[0][0].get("sparsity") or {}
    if len(lines[0]) < 2 or not tables:
        return None
    kept = _kept(len(lines[0]))
    shares = {
        table: {share: _means([[one[k]["sparsity"][table][share] for k in kept] for one in lines]) for share in names}
        for table, names in tables.items()
    }
    return {"rounds": [lines[0][k]["round"] for k in kept], "tables": shares}


def _shared_lines(runs: Sequence[SeenRun]) -> list[list[dict[str, Any]]]:
    """The rounds that every seed has."""
    shortest = min(len(run.rounds) for run in runs)
    return [run.rounds[:shortest] for run in runs]


def _kept(length: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round())]


def _means(rows: list[list[float]]) -> list[float]:
    return [round(float(value), 6) for value in np.mean(rows, axis=0)]
