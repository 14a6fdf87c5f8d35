"""How far aggregation drives watched clients off the path they take alone."""

from __future__ import annotations

import numpy as np

from ownview.base.arguments import kinds_checked
from ownview.base.errors import SettingError
from ownview.runs.run import Run


@kinds_checked()
def skew(one: Run, other: Run, name: str = "user") -> dict[str, list[float]]:
    """How far two runs drive the same watched clients apart, round by round.

    For every user: |d - e| / |e|, d and e the updates x_t - x_(t-1) of value `name` in round t of the first and of the
    second run, from round 2 on. With the second run never aggregating, that is the skew aggregation brings.
    """
    paths = [_paths(run, name) for run in (one, other)]
    found = {}
    for user in paths[0]:
        if user not in paths[1]:
            raise SettingError(f"{other.folder.path}: user {user} was not watched; watch the same users in both runs")
        first, second = (np.diff(np.array(path[user]), axis=0) for path in paths)
        rounds = min(len(first), len(second))
        apart = np.linalg.norm(first[:rounds] - second[:rounds], axis=1)
        found[user] = (apart / np.maximum(np.linalg.norm(second[:rounds], axis=1), 1e-12)).tolist()
    return found


def _paths(run: Run, name: str) -> dict[str, list[list[float]]]:
    users = run.experiment.watch
    lines = [line["watched"] for line in run.rounds if "watched" in line]
    if not lines or name not in lines[0][users[0]]:
        raise SettingError(f"{run.folder.path}: value {name!r} of no client was watched; run it with --watch USER")
    return {user: [line[user][name] for line in lines] for user in users}
