"""GPFedRec: a graph of users guides the item tables, each client is drawn towards its neighbours' mean.

Zhang, Long, Zhou, Zhang, Yan and Yang, "GPFedRec: Graph-Guided Personalization for Federated Recommendation", KDD 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.network import Network
from ownview.seam.client import Client
from ownview.seam.method import Method, cross_entropy
from ownview.seam.mixing import NeighbourGraph
from ownview.seam.roles import PRIVATE, Param, personal, private
from ownview.seam.server import Server
from ownview.seam.training import Batch, BeginWith, Context, Params, Phase, World


@dataclass(frozen=True)
class GPFedRec(Method):
    """score = MLP([u, q_i]), ReLU inside, with a private user vector u and network, on a table of the client's own.

    loss = mean cross-entropy + lambda mean (q - r)^2; r_u is the plain mean of the tables of u's neighbours in the
    server's graph. Every round the client starts from the mean of all r_u, trains, uploads its table, and predicts with
    it. The default network is 2d-d-d/2-1.

    `guided_over` says what the second mean is over: with `batch` the batch's samples, so that a row of a small batch is
    drawn far (and thrown past r where the table's rate is high); with `table` all m rows, as the paper has it, of which
    those of the batch move.
    """

    name: ClassVar[str] = "gpfedrec"
    title: ClassVar[str] = "GPFedRec"
    summary: ClassVar[str] = "private network; item table drawn towards that of similar users"
    paper: ClassVar[str] = "Zhang et al., KDD 2024"

    local_epochs: int = setting(1, "passes over the client's samples in a round", low=1, search=OneOf((1, 2, 5, 10)))
    embedding_size: int = setting(16, "d, length of user and item vectors", low=2, search=OneOf((8, 16, 32, 64)))
    hidden_layers: tuple[int, ...] = setting((), "widths of hidden layers; none given: d, d/2", low=1)
    guidance: float = setting(
        0.01, "lambda, weight of the distance to the neighbours' mean", low=0, search=Between(1e-4, 1.0, log=True)
    )
    guided_over: str = setting(
        "batch", "what the distance is a mean over: the batch's samples, or all rows", choices=("batch", "table")
    )
    threshold: float = setting(1.0, "tau: neighbours are more similar than this times the mean", above=0)
    released: bool = setting(False, "take the cosine distance for the similarity, as the released code does")
    optimizer: str = setting("sgd", "of everything", choices=("sgd", "adam"))
    learning_rate: float = setting(0.1, "the optimiser's rate", above=0, search=Between(1e-3, 0.3, log=True))
    rate_factor: float = setting(
        80.0,
        "SGD's rates: of the user vector learning_rate times this, of the table also times the number of items",
        above=0,
        search=Between(1.0, 300.0, log=True),
    )

    def server(self, world: World) -> Server:
        """For each client the mean of its neighbours."""
        return Server(mixing=NeighbourGraph(self.threshold, distances=self.released))

    @property
    def network(self) -> Network:
        """MLP([u, q_i]), which makes the score."""
        size = self.embedding_size
        return Network(size, self.hidden_layers or (size, size // 2))

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector and network; an item table of the client's own, and what guides it."""
        size = self.embedding_size
        items = personal(size, received_as="guide", everybodys_mean="mean")
        return {"user": private(size), "items": items, **self.network.params(PRIVATE)}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together; the table begins with the mean of all guides."""
        step = self.network.step(self.optimizer, self.learning_rate, self.rate_factor, world.num_items)
        return (Phase((step,), self.local_epochs, opening=BeginWith("items", "mean")),)

    def scores(self, p: Params) -> Tensor:
        """[R] MLP([u, q_i])."""
        return self.network.scores(p)

    def client(self, world: World) -> Client:
        """The client's half; where the distance is a mean over all rows, its loss knows how many there are."""
        one = super().client(world)
        if self.guided_over == "batch":
            return one
        return replace(one, work=replace(one.training, loss=partial(self._guided_over_all, world.num_items)))

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] cross-entropy, and the mean distance of the batch's samples to the guide."""
        return self._guided(p, batch, batch.counts / batch.mask.sum())

    def _guided_over_all(self, num_items: int, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] cross-entropy, and the part that the batch's rows, each once, have in the mean distance of all m rows."""
        return self._guided(p, batch, (batch.counts > 0).to(batch.counts.dtype) / num_items)

    def _guided(self, p: Params, batch: Batch, weights: Tensor) -> Tensor:
        apart = (p["items"] - p["guide"]).square().mean(-1)
        return cross_entropy(self.scores(p), batch) + self.guidance * (weights @ apart)
