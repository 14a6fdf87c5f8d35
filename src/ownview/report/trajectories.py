"""Paths of user vectors with and without aggregation (PFedCLR's Figures 2 and 5), and how far apart they are driven.

A run of METHOD with watched clients is held against one of METHOD + late-aggregation with the same seed and protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ownview.base.errors import SettingError
from ownview.report.projection import main_directions
from ownview.report.reading import SeenRun
from ownview.report.variants import Variant
from ownview.runs.skew import skew

_WITHOUT = "late-aggregation"
_VECTOR = "user"


def trajectories(found: Sequence[Variant]) -> list[dict[str, Any]]:
    """For every pair, protocol and watched user: both paths in their common main directions, and the skew."""
    made = []
    for place, variant in enumerate(found):
        for partner in found:
            if not _apart_by_aggregation(variant, partner):
                continue
            for protocol in variant.runs:
                made += [
                    {"variant": place, "protocol": protocol, "without": partner.label, **pair}
                    for pair in _pairs(variant.runs[protocol], partner.runs.get(protocol, []))
                ]
    return made


def _apart_by_aggregation(one: Variant, other: Variant) -> bool:
    """Whether the other is the first with late aggregation around it, all else equal."""
    rest = {name: value for name, value in other.settings.items() if not name.startswith(f"{_WITHOUT}.")}
    return rest["method"] == f"{one.settings['method']} + {_WITHOUT}" and all(
        rest.get(name) == value for name, value in one.settings.items() if name != "method"
    )


def _pairs(runs: Sequence[SeenRun], partners: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """Of the first seed that both have."""
    for run in runs:
        for partner in partners:
            if run.experiment.seed == partner.experiment.seed:
                return _paths(run, partner)
    return []


def _paths(run: SeenRun, partner: SeenRun) -> list[dict[str, Any]]:
    users = [user for user in run.experiment.watch if user in partner.experiment.watch]
    try:
        apart = skew(run, partner, _VECTOR) if users else {}
    except SettingError:  # a method without such a vector, or other users watched
        return []
    made = []
    for user in users:
        paths = [np.array([line["watched"][user][_VECTOR] for line in one.rounds]) for one in (run, partner)]
        flat = main_directions(np.concatenate(paths))
        points = [[float(f"{x:.4g}"), float(f"{y:.4g}")] for x, y in flat]
        made.append(
            {
                "user": user,
                "paths": [points[: len(paths[0])], points[len(paths[0]) :]],
                "skew": [round(value, 5) for value in apart[user]],
            }
        )
    return made
