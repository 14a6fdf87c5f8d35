"""FedRecon: nothing private outlives a round; a client reconstructs its user vector whenever it needs one.

Singhal, Sidahmed, Garrett, Wu, Rush and Prakash, "Federated Reconstruction: Partially Local Federated Learning",
NeurIPS 2021. Matrix factorisation by SGD, as PFedRec's paper runs it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.client import Client
from ownview.seam.initial import Normal
from ownview.seam.method import Method
from ownview.seam.optimizers import Sgd
from ownview.seam.portable import Factors, Logistic, Portable
from ownview.seam.roles import Param, fresh, shared, table
from ownview.seam.training import Params, Phase, Step, World


@dataclass(frozen=True)
class FedRecon(Method):
    """score = u . q_i; u begins every round anew, is trained on the support with Q frozen, then Q on the query.

    Before it predicts, a client reconstructs u in the same way, on all its training samples with the newest Q.
    """

    name: ClassVar[str] = "fedrecon"
    title: ClassVar[str] = "FedRecon"
    summary: ClassVar[str] = "user vector reconstructed from scratch in every round and before predicting"
    paper: ClassVar[str] = "Singhal et al., NeurIPS 2021"

    local_epochs: int = setting(1, "passes over the query that move the item table", low=1, search=OneOf((1, 2, 5, 10)))
    reconstruction_epochs: int = setting(10, "passes that reconstruct the user vector", low=1, search=Between(1, 20))
    split: bool = setting(True, "support and query are halves of the samples; off: both are all of them")
    embedding_size: int = setting(32, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    learning_rate: float = setting(0.1, "SGD's rate for the user vector", above=0, search=Between(1e-3, 1.0, log=True))
    table_rate_factor: float = setting(
        80.0,
        "the table's rate is learning_rate * number of items * this factor",
        above=0,
        search=Between(1.0, 300.0, log=True),
    )
    initial_scale: float = setting(
        1.0, "standard deviation of the initial item table", low=0, search=Between(0.01, 1.0, log=True)
    )
    user_scale: float = setting(0.0, "standard deviation of the user vector a reconstruction begins with", low=0)

    def params(self, world: World) -> dict[str, Param]:
        """A user vector that starts fresh in every round, and a shared item table."""
        size = self.embedding_size
        return {
            "user": fresh(size, initial=Normal(self.user_scale)),
            "items": table(shared(size, initial=Normal(self.initial_scale))),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Reconstruct on the support, then move the table on the query."""
        support, query = ("support", "query") if self.split else ("all", "all")
        table_rate = self.learning_rate * world.num_items * self.table_rate_factor
        moving = Phase((Step(("items",), Sgd(table_rate)),), self.local_epochs, part=query)
        return self._reconstruction(support), moving

    def client(self, world: World) -> Client:
        """Before it predicts, the client reconstructs its vector on all samples."""
        return replace(super().client(world), before_predicting=(self._reconstruction("all"),))

    def _reconstruction(self, part: str) -> Phase:
        return Phase((Step(("user",), Sgd(self.learning_rate)),), self.reconstruction_epochs, part=part)

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i."""
        return p["items"] @ p["user"]

    def portable(self, received: Params, world: World) -> Portable:
        """The shared table; a new device fits its vector to it, as clients do before every prediction."""
        return Factors(received["items"], Logistic(self.negatives))
