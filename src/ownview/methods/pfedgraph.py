"""pFedGraph: the server infers who should work with whom, and makes a model for each client.

Ye, Ni, Wu, Chen and Wang, "Personalized Federated Learning with Inferred Collaboration Graphs", ICML 2023.
As PFedCLR's paper runs it for recommendation: on FedMF's model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.method import Method, cross_entropy
from ownview.seam.mixing import UpdateSimilarity
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, personal, private
from ownview.seam.server import Server
from ownview.seam.training import Batch, BeginWith, Context, Params, Phase, Step, World

_SMALL = 1e-12


@dataclass(frozen=True)
class PFedGraph(Method):
    """score = u . q_i with a private user vector u and an item table that starts every round from the client's mixture.

    loss = mean cross-entropy - lambda cos(Q, R), R the mixture, both restricted to the batch's rows, a row as often as
    it stands in the batch. The server mixes uploads by the likeness of their changes since the very start. The client
    predicts with the table it trained.
    """

    name: ClassVar[str] = "pfedgraph"
    title: ClassVar[str] = "pFedGraph"
    summary: ClassVar[str] = "item table mixed for each client by an inferred graph of who works with whom"
    paper: ClassVar[str] = "Ye et al., ICML 2023"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    alpha: float = setting(
        0.8, "how near the weights stay to the shares of the data", above=0, search=Between(0.05, 2.0, log=True)
    )
    guidance: float = setting(
        0.01, "lambda, weight of the cosine with the mixture", low=0, search=Between(1e-4, 1.0, log=True)
    )
    learning_rate: float = setting(0.01, "Adam's rate", above=0, search=Between(1e-3, 0.3, log=True))

    def server(self, world: World) -> Server:
        """A table for each client, mixed by likeness of changes."""
        return Server(mixing=UpdateSimilarity(self.alpha))

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector; an item table of the client's own, and its mixture beside it."""
        size = self.embedding_size
        return {"user": private(size), "items": personal(size, received_as="mixture")}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together; the table begins with the mixture."""
        step = Step(("user", "items"), Adam(self.learning_rate))
        return (Phase((step,), self.local_epochs, opening=BeginWith("items", "mixture")),)

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i."""
        return p["items"] @ p["user"]

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] cross-entropy and likeness to the mixture."""
        own, mixture = p["items"], p["mixture"]
        product, first, second = (
            batch.counts @ (x * y).sum(-1) for x, y in ((own, mixture), (own, own), (mixture, mixture))
        )
        likeness = product / (first * second + _SMALL).sqrt()
        return cross_entropy(self.scores(p), batch) - self.guidance * likeness
