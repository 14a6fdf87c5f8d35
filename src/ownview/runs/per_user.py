"""Values of every user from run folders, and whether the users of several runs can be paired."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ownview.evaluation.comparison import UserValues
from ownview.evaluation.protocol import Protocol
from ownview.runs.run import Run


def user_values(seeds: Sequence[Run], metrics: Sequence[str]) -> dict[str, UserValues] | None:
    """The metrics of one row of a table, from its runs with different seeds; None where these ranked different users.

    Users can be paired with those of another row where they are the same in the same order, with the same held-out
    items, under the same protocol (its name may differ).
    """
    tables = [run.folder.read_users() for run in seeds]
    found = [asked(run.experiment.protocol, table) for run, table in zip(seeds, tables, strict=True)]
    if any(one != found[0] for one in found[1:]):
        return None
    return {name: UserValues(found[0], np.array([table[name] for table in tables], dtype=float)) for name in metrics}


def asked(protocol: Protocol, table: dict[str, list[str]]) -> tuple[str, ...]:
    """What each user of users.csv was asked, after the protocol, so that rows of different ones are never paired."""
    settings = {name: value for name, value in protocol.values().items() if name != "name"}
    how = json.dumps(settings, sort_keys=True, default=list)
    return (how, *(f"{user}\x1f{item}" for user, item in zip(table["user"], table["held_out"], strict=True)))
