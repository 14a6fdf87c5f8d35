"""FedFast: clients are drawn evenly from clusters of users, and rows are averaged by how much each client moved them.

Muhammad, Wang, O'Reilly-Morgan, Tragos, Smyth, Hurley, Geraci and Lawlor, "FedFast: Going Beyond Average for Faster
Training of Federated Recommender Systems", KDD 2020. On FedMF's model, as FedEM's paper runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.cohorts import ClusteredCohort
from ownview.seam.method import Method
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, reported, shared, table
from ownview.seam.server import RowMean, Server
from ownview.seam.training import Params, Phase, Step, World


@dataclass(frozen=True)
class FedFast(Method):
    """score = u . q_i with a user vector u, which the server sees, and a shared item table Q, trained together.

    Row i of Q becomes sum_k w_ki q_ki / sum_k w_ki, w_ki = |q_ki - q_i|_1 of client k's change. Where not all clients
    take part, the cohort is drawn evenly from k-means clusters of user vectors, and the user vectors of the others move
    by decay^round times the mean movement of their cluster's clients in the cohort.
    """

    name: ClassVar[str] = "fedfast"
    title: ClassVar[str] = "FedFast"
    summary: ClassVar[str] = "matrix factorisation; cohorts from clusters of users, rows weighed by their change"
    paper: ClassVar[str] = "Muhammad et al., KDD 2020"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    learning_rate: float = setting(0.01, "Adam's rate", above=0, search=Between(1e-3, 0.3, log=True))
    clusters: int = setting(5, "p, of users", low=1, search=Between(1, 20))
    decay: float = setting(0.9, "of the movement of clients outside the cohort, once more every round", low=0, high=1)

    def server(self, world: World) -> Server:
        """Rows weighed by the size of their change; cohorts from clusters of user vectors."""
        return Server(RowMean(_size_of_change), cohort=ClusteredCohort("user", self.clusters, self.decay))

    def params(self, world: World) -> dict[str, Param]:
        """A user vector that the server sees, and a shared item table."""
        return {"user": reported(self.embedding_size), "items": table(shared(self.embedding_size))}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together."""
        return (Phase((Step(("user", "items"), Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i."""
        return p["items"] @ p["user"]


def _size_of_change(change: Tensor) -> Tensor:
    """[B, R] the L1 norm of each row's change [B, R, d]."""
    return change.abs().sum(-1)
