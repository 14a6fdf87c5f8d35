"""Metrics of runs by user, so that rows can be paired over the same users who were asked the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from ownview.evaluation.comparison import UserValues
from ownview.evaluation.protocol import Protocol
from ownview.registry import BASELINES
from ownview.runs.run import Run


def user_values(seeds: Sequence[Run], metrics: Sequence[str]) -> dict[str, UserValues] | None:
    """The metrics of one row, a value a seed and user; None where its seeds ranked different users, or have none.

    Users can be paired with those of another row where they are the same in the same order, with the same held-out
    items, under the same protocol (its name may differ). Cuts of one protocol are pooled: a user asked at several
    cuts has a value at each and is one person.
    """
    if not all(run.folder.has_users for run in seeds):
        return None
    cuts: dict[str, list[Run]] = {}
    for run in seeds:
        cuts.setdefault(run.experiment.protocol.name, []).append(run)
    parts = [_of_one_cut(runs, metrics) for _, runs in sorted(cuts.items())]
    if any(part is None for part in parts) or len({len(runs) for runs in cuts.values()}) > 1:
        return None
    there = [part for part in parts if part is not None]
    yardstick = getattr(BASELINES.get(seeds[0].experiment.method), "yardstick", False)
    return {
        name: UserValues(
            tuple(one for part in there for one in part[name].asked),
            np.concatenate([part[name].values for part in there], axis=1),
            yardstick,
            tuple(user for part in there for user in part[name].persons or ()),
        )
        for name in metrics
    }


def _of_one_cut(seeds: Sequence[Run], metrics: Sequence[str]) -> dict[str, UserValues] | None:
    tables = [run.folder.read_users() for run in seeds]
    found = [_asked(run.experiment.protocol, table) for run, table in zip(seeds, tables, strict=True)]
    if any(one != found[0] for one in found[1:]):
        return None
    return {
        name: UserValues(
            found[0], np.array([table[name] for table in tables], dtype=float), persons=tuple(tables[0]["user"])
        )
        for name in metrics
    }


def _asked(protocol: Protocol, table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What each user of users.csv was asked, after the protocol, so that rows of different ones are never paired."""
    settings = {name: value for name, value in protocol.values().items() if name != "name"}
    how = json.dumps(settings, sort_keys=True, default=list)
    return (how, *(f"{user}\x1f{item}" for user, item in zip(table["user"], table["held_out"], strict=True)))
