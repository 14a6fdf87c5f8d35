"""Watched clients: their values after every round, and the method's readings of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ownview.federation.preparation import Preparation
from ownview.federation.training import TrainingWork
from ownview.round.federation import Federation

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
            for name, mixtures in self.federation.server.mixtures.items():
                found[f"{user}.weights of {name}"] = mixtures.weights[position].clone()
        return found

    def about(self) -> dict[str, Any]:
        """Watched clients: ids, positions in others' mixtures, and the role of each table.

        A table is "local" where the client has one of its own, "global" where it is the one all clients share or one
        the server made for this client.
        """
        roles: dict[str, str] = {}
        for name, param in self.federation.client.params.items():
            if param.rows:
                roles[name] = "local" if param.own else "global"
            roles |= dict.fromkeys(param.tables_beside, "global")
        return {"users": self.users, "positions": self.positions, "roles": roles}

    def _each(self) -> list[tuple[str, dict[str, Tensor]]]:
        place = torch.tensor(self.positions, device=self.federation.machine.device)
        values, axes = self.federation.predicting(place, None)
        work = self.federation.work
        prepared = Preparation(work, self.federation.newest).values(place) if isinstance(work, TrainingWork) else {}
        each = []
        for k, user in enumerate(self.users):
            mine = {name: value if axes[name] is None else value[k] for name, value in values.items()}
            mine |= {name: value[k] for name, value in prepared.items()}
            read = self.federation.client.readings(mine)
            each.append((user, {n: value for n, value in (mine | read).items() if not n.endswith(".outside")}))
        return each
