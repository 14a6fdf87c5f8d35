"""Rules that choose a round's clients by reported values, and move the clients outside the cohort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ownview.base.randomness import bits, derive
from ownview.seam.clusters import cluster


@dataclass(frozen=True, eq=False)
class Seen:
    """The server's knowledge of its n clients when a round begins.

    Args:
        reported: by name [n, ...], the newest values of `reported` parameters.
        seed: of the run.
        round: from 1.
    """

    reported: Mapping[str, Tensor]
    seed: int
    round: int


class Cohort(Protocol):
    """A way to choose; see `Server.cohort`."""

    def choose(self, seen: Seen, wanted: int) -> Tensor:
        """[wanted] positions of the clients of the round, ascending; fewer where there are not so many."""

    def moves(self, seen: Seen, cohort: Tensor, newest: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """By name [n, ...], what the server adds to the reported values of clients outside the cohort; 0 inside.

        Args:
            seen: as it was when the round began.
            cohort: positions of the clients that took part.
            newest: by name [n, ...], with what they reported at the end.
        """
        return {}


@dataclass(frozen=True)
class ClusteredCohort:
    """FedFast's: k-means of a reported value; as many clients from every cluster, and the others follow them.

    A client outside the cohort moves by decay^round times the mean movement of its cluster's clients in the cohort, its
    delegates; where it has none, it stays.

    Args:
        by: name of the reported value.
        clusters: how many.
        decay: factor on the movement of others, once more every round.
    """

    by: str
    clusters: int
    decay: float

    def choose(self, seen: Seen, wanted: int) -> Tensor:
        """In turn one of every cluster, at random inside it; a cluster that is used up is passed over."""
        groups = self._groups(seen)
        clients = torch.arange(len(groups), device=groups.device)
        drawn = bits(derive(seen.seed, "cohort", seen.round), clients, torch.zeros_like(clients))
        order = drawn.argsort()
        turns = one_hot(groups[order], self.clusters).cumsum(0).gather(1, groups[order][:, None])[:, 0]
        return order[turns.argsort(stable=True)][:wanted].sort().values

    def moves(self, seen: Seen, cohort: Tensor, newest: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Moves of the value that clusters are made by."""
        before = seen.reported[self.by]
        members = one_hot(self._groups(seen), self.clusters).to(before)
        delegates = members[cohort]
        moved = (newest[self.by] - before)[cohort].flatten(1)
        means = delegates.T @ moved / delegates.sum(0).clamp(min=1)[:, None]
        found = self.decay**seen.round * members @ means
        found[cohort] = 0
        return {self.by: found.reshape(before.shape)}

    def _groups(self, seen: Seen) -> Tensor:
        key = derive(seen.seed, "clusters", seen.round)
        return cluster(seen.reported[self.by].flatten(1), self.clusters, key)
