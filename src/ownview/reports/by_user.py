"""What users.csv holds beyond the table: results by activity, their spread over users, and what chance would reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ownview.data.interactions import IntArray
from ownview.evaluation.groups import quarters
from ownview.evaluation.metrics import HEADLINE, chance_of_hit
from ownview.evaluation.statistics import mean_intervals
from ownview.reports.reading import SeenRun
from ownview.runs.summaries.user_values import user_values
from ownview.runs.table import grouped

_STEPS = 40
_K = 10


def first_of_cuts(runs: Sequence[SeenRun]) -> list[SeenRun]:
    """One run of each cut of a protocol, in the order in which `user_values` puts their users together."""
    cuts = grouped((run.experiment.protocol.name, run) for run in runs)
    return [own[0] for _, own in sorted(cuts.items())]


def groups(runs: Sequence[SeenRun]) -> list[dict[str, Any]] | None:
    """HR@10 and NDCG@10 of each quarter of the users by activity, with 95 % intervals; None where users.csv is missing.

    A user's value is the mean over seeds, and activity the number of interactions that train (of users who do not
    train: that are known). A user asked at several cuts has a value at each, and is one person in the intervals.
    """
    found = user_values(runs, HEADLINE)
    if found is None:
        return None
    interactions = np.concatenate([_column(run, "training_interactions") for run in first_of_cuts(runs)])
    values = np.stack([found[metric].by_user for metric in HEADLINE], axis=1)
    persons = np.array(found[HEADLINE[0]].persons)
    made = []
    for members in quarters(interactions):
        lows, highs = mean_intervals(values[members], np.unique(persons[members], return_inverse=True)[1])
        means = values[members].mean(axis=0)
        ends = zip(HEADLINE, means.tolist(), lows.tolist(), highs.tolist(), strict=True)
        mine = interactions[members]
        made.append(
            {
                "interactions": [int(mine.min()), int(mine.max())],
                "users": len(members),
                "cells": {metric: {"mean": mean, "low": low, "high": high} for metric, mean, low, high in ends},
            }
        )
    return made


def distribution(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Share of users whose NDCG@10 (mean over seeds) is at least x, for x in steps of 1 / 40 from above 0 to 1.

    At x = 0 the share counts the users above 0: those whose held-out item is among the ten at all. With expected ties a
    user may have a little of it. None where users.csv is missing.
    """
    found = user_values(runs, ["NDCG@10"])
    if found is None:
        return None
    values = found["NDCG@10"].by_user
    at_least = [float((values > 1e-9).mean())]
    at_least += [float((values >= x - 1e-9).mean()) for x in np.arange(1, _STEPS + 1) / _STEPS]
    return {
        "x": [k / _STEPS for k in range(_STEPS + 1)],
        "share": [round(share, 5) for share in at_least],
        "median": float(np.median(values)),
    }


def chance(runs: Sequence[SeenRun]) -> dict[str, float] | None:
    """HR@10 and NDCG@10 that a random order of the same candidates reaches, mean over users; None without users.csv.

    With r right answers among c candidates, each place holds a right one with chance r / c, so NDCG@10 is r / c times
    the sum of the first ten gains, over the largest sum that r answers can reach.

    Args:
        runs: under one protocol, whose cuts are pooled.
    """
    known = [run for run in first_of_cuts([run for run in runs if run.folder.has_users]) if _tells_candidates(run)]
    if not known:
        return None
    candidates = np.concatenate([_column(run, "candidates") for run in known])
    right = np.concatenate([_answers(run) for run in known])
    sums = np.cumsum(1 / np.log2(np.arange(2, _K + 2)))
    reached = sums[np.minimum(candidates, _K) - 1] * right / candidates
    by_rank = reached / sums[np.minimum(right, _K) - 1]
    return {"HR@10": float(chance_of_hit(candidates, right, _K).mean()), "NDCG@10": float(by_rank.mean())}


def _tells_candidates(run: SeenRun) -> bool:
    return "candidates" in run.users


def _column(run: SeenRun, name: str) -> IntArray:
    return np.array(run.users[name], dtype=float).astype(np.int64)


def _answers(run: SeenRun) -> IntArray:
    """[users] how many items were held out."""
    return np.array([1 + text.count(";") for text in run.users["held_out"]], dtype=np.int64)
