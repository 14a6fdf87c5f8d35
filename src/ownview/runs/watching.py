"""Some clients watched closely: what they hold after every round, and what a method says about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.federation.preparation import Preparation
from ownview.federation.round import Federation

if TYPE_CHECKING:
    from ownview.runs.run import Run

_SMALL = 128
"""Values with more numbers than this are noted at the end only."""

Watched = dict[str, dict[str, list[float]]]
"""By user and name, values as plain numbers."""


@dataclass(frozen=True)
class Watch:
    """The clients of some users.

    Args:
        federation: they belong to.
        users: their names.
        positions: of the users.
    """

    federation: Federation
    users: tuple[str, ...]
    positions: tuple[int, ...]

    @classmethod
    def of(cls, federation: Federation, users: Sequence[str]) -> Watch:
        """By name; raises where a user is not in the data."""
        return cls(federation, tuple(users), tuple(federation.split.data.position_of_user(user) for user in users))

    def line(self) -> Watched:
        """What is small enough to be noted after every round: vectors of the client, and readings."""
        found: Watched = {}
        for user, values in self._each():
            small = {name: value for name, value in values.items() if value.numel() <= _SMALL}
            found[user] = {name: [round(x, 6) for x in value.reshape(-1).tolist()] for name, value in small.items()}
        return found

    def tensors(self) -> dict[str, Tensor]:
        """By "USER.NAME", everything: tables, readings, and how much of whose upload the client receives."""
        found: dict[str, Tensor] = {}
        for (user, values), position in zip(self._each(), self.positions, strict=True):
            found |= {f"{user}.{name}": value.clone() for name, value in values.items()}
            for name, mixtures in self.federation.state.mixtures.items():
                found[f"{user}.weights of {name}"] = mixtures.weights[position].clone()
        return found

    def about(self) -> dict[str, Any]:
        """Who they are, where they stand in what others send them, and what each table is to them.

        A table is "local" where the client has one of its own, "global" where it is the one all clients share or one
        the server made for this client.
        """
        roles: dict[str, str] = {}
        for name, param in self.federation.state.params.items():
            if param.rows:
                roles[name] = "local" if param.own else "global"
            roles |= {table: "global" for table in (param.beside, param.common) if table}
        return {"users": self.users, "positions": self.positions, "roles": roles}

    def _each(self) -> list[tuple[str, dict[str, Tensor]]]:
        place = torch.tensor(self.positions, device=self.federation.machine.device)
        values, axes = self.federation.state.predicting(place, None)
        prepared = Preparation(self.federation).values(place)
        each = []
        for k, user in enumerate(self.users):
            mine = {name: value if axes[name] is None else value[k] for name, value in values.items()}
            mine |= {name: value[k] for name, value in prepared.items()}
            read = self.federation.method.readings(mine)
            each.append((user, {n: value for n, value in (mine | read).items() if not n.endswith(".rest")}))
        return each


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
