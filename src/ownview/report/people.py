"""Who is served how well: groups by activity, and the spread of NDCG@10 over users."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from ownview.evaluation.metrics import HEADLINE
from ownview.report.reading import SeenRun
from ownview.runs.cells import user_values

_STEPS = 40


def groups(runs: Sequence[SeenRun]) -> list[dict[str, Any]] | None:
    """HR@10 and NDCG@10 of each quarter of the users by activity, mean over seeds; None where runs do not tell."""
    told = [run.result.get("groups") for run in runs]
    if any(one is None for one in told):
        return None
    found = []
    for same in zip(*(one for one in told if one is not None), strict=True):
        values = {metric: mean(group["test"][metric] for group in same) for metric in HEADLINE}
        found.append({"interactions": same[0]["interactions"], "users": same[0]["users"], "test": values})
    return found


def distribution(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Share of users whose NDCG@10 (mean over seeds) is at least x, for x in steps of 1 / 40 from above 0 to 1.

    At x = 0 the share counts the users above 0: those whose held-out item is among the ten at all. With expected ties a
    user may have a little of it. None where users.csv is missing.
    """
    found = user_values(runs, ["NDCG@10"]) if all(run.folder.has_users for run in runs) else None
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
