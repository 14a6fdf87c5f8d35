"""GPFedRec: a graph of users guides the item tables, each client is drawn towards its neighbours' mean.

Zhang, Long, Zhou, Zhang, Yan and Yang, "GPFedRec: Graph-Guided Personalization for Federated Recommendation", KDD 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from ownview.initial import Normal, Uniform
from ownview.method import Method, cross_entropy
from ownview.mixing import Mixing, NeighbourGraph
from ownview.optimizers import Adam, Optimizer, Sgd
from ownview.search import Between, OneOf
from ownview.settings import setting
from ownview.types import Batch, Context, Param, Params, Phase, Step, World


@dataclass(frozen=True)
class GPFedRec(Method):
    """score = MLP([u, q_i]), ReLU inside, with a private user vector u and network, on a table of the client's own.

    loss = mean cross-entropy + lambda mean (q - r)^2, the mean over the batch's samples and the dimensions; r_u is the
    plain mean of the tables of u's neighbours in the server's graph. Every round the client starts from the mean of all
    r_u, trains, uploads its table, and predicts with it. The default network is 2d-d-d/2-1.
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

    @property
    def server_mixing(self) -> Mixing | None:
        """The mean of a client's neighbours."""
        return NeighbourGraph(self.threshold, distances=self.released)

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the network, from its input to its output."""
        size = self.embedding_size
        return (2 * size, *(self.hidden_layers or (size, size // 2)), 1)

    def params(self, world: World) -> dict[str, Param]:
        """U and the network private; the table is uploaded, and what guides it stands beside."""
        network: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise(self.widths)):
            initial = Uniform(1 / math.sqrt(inputs))
            network[f"weight{depth}"] = Param((inputs, outputs), initial=initial)
            network[f"bias{depth}"] = Param((outputs,), initial=initial)
        size = (self.embedding_size,)
        table = Param(size, rows=True, shared=True, kept=True, beside="guide", common="mean", initial=Normal(1.0))
        return {"user": Param(size, initial=Normal(1.0)), "items": table, **network}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together; the table begins with the mean of all guides."""
        network = tuple(name for name in self.params(world) if name not in ("user", "items"))
        table = Step(("items",), self._optimizer(self.rate_factor * world.num_items))
        user = Step(("user",), self._optimizer(self.rate_factor), alongside=table)
        step = Step(network, self._optimizer(1.0), alongside=user)
        return (Phase((step,), self.local_epochs, opening=_start),)

    def _optimizer(self, factor: float) -> Optimizer:
        return Adam(self.learning_rate) if self.optimizer == "adam" else Sgd(self.learning_rate * factor)

    def scores(self, p: Params) -> Tensor:
        """[R] MLP([u, q_i])."""
        # The user's half of the first layer is the same for every row, so it is worked out once.
        upper, lower = p["weight0"][: self.embedding_size], p["weight0"][self.embedding_size :]
        hidden = p["user"] @ upper + p["items"] @ lower + p["bias0"]
        for depth in range(1, len(self.widths) - 1):
            hidden = torch.relu(hidden) @ p[f"weight{depth}"] + p[f"bias{depth}"]
        return hidden.squeeze(-1)

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] cross-entropy, and the distance of the batch's rows to the guide's."""
        apart = (p["items"] - p["guide"]).square().mean(-1)
        return cross_entropy(self.scores(p), batch) + self.guidance * (batch.counts @ apart) / batch.mask.sum()


def _start(p: Params, context: Context) -> Params:
    return {"items": p["mean"]}
