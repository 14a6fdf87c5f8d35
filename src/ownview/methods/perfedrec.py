"""PerFedRec: a graph network on each client, clusters of users, and three models whose scores are averaged.

Luo, Xiao and Song, "Personalized Federated Recommendation via Joint Representation Learning, User Clustering, and Model
Adaptation", CIKM 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.client import Client
from ownview.seam.initial import Normal
from ownview.seam.method import Method
from ownview.seam.mixing import ClusterMean
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, history, personal, reported
from ownview.seam.server import Server
from ownview.seam.training import Batch, BeginWith, Context, Params, Phase, Step, World


@dataclass(frozen=True)
class PerFedRec(Method):
    """score = mean of u' . q'_i over three item tables: the client's own, its cluster's mean and everybody's mean.

    u' = (u + L sum_j h_j q_j / sqrt(h)) / (L + 1) and q'_i = (q_i + L h_i u / sqrt(h)) / (L + 1) average L messages on
    the client's star graph, h_i = 1 for the h items it has in training, else 0. Every round the client starts from its
    cluster's mean and trains u and its table on pairs: mean softplus(x_n - x_p), p a positive, n a negative. Clusters
    are made by k-means of user vectors, which the server sees.
    """

    name: ClassVar[str] = "perfedrec"
    title: ClassVar[str] = "PerFedRec"
    summary: ClassVar[str] = "graph network; scores of own, cluster's and global item table averaged"
    paper: ClassVar[str] = "Luo et al., CIKM 2022"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    clusters: int = setting(5, "K, of users", low=1, search=Between(1, 20))
    layers: int = setting(3, "L, of message passing; 0 for matrix factorisation", low=0, search=Between(0, 3))
    learning_rate: float = setting(0.01, "Adam's rate", above=0, search=Between(1e-3, 0.3, log=True))
    initial_scale: float = setting(
        0.05, "standard deviation of the initial values", low=0, search=Between(0.01, 1.0, log=True)
    )

    def server(self, world: World) -> Server:
        """For each client the mean of its cluster."""
        return Server(mixing=ClusterMean("user", self.clusters))

    def client(self, world: World) -> Client:
        """A user's vector is made of all items it has, so scores need whole tables."""
        return replace(super().client(world), whole_rows=self.layers > 0)

    def params(self, world: World) -> dict[str, Param]:
        """A user vector that the server sees; an item table of the client's own, and both means beside it."""
        size, initial = self.embedding_size, Normal(self.initial_scale)
        return {
            "user": reported(size, initial=initial),
            "items": personal(size, received_as="cluster", everybodys_mean="everybody", initial=initial),
            "history": history(),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together; the table begins with the cluster's."""
        step = Step(("user", "items"), Adam(self.learning_rate))
        return (Phase((step,), self.local_epochs, opening=BeginWith("items", "cluster")),)

    def scores(self, p: Params) -> Tensor:
        """[R] mean of the three models' scores."""
        return torch.stack([self._scores(p, p[table]) for table in ("items", "cluster", "everybody")]).mean(0)

    def _scores(self, p: Params, items: Tensor) -> Tensor:
        """[R] u' . q'_i on one table."""
        edges = p["history"] * self.layers / p["history"].sum().clamp(min=1).sqrt()
        user = (p["user"] + edges @ items) / (self.layers + 1)
        return (items @ user + edges * (p["user"] @ user)) / (self.layers + 1)

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean over pairs of a positive and a negative of the batch; 0 where there is none.

        Positives and negatives are numbered in the order of their rows; the a-th positive is paired with negatives
        ka + s, ..., ka + s + k - 1, counted round and round, k the setting `negatives`, s falling elsewhere each round.
        """
        kind = torch.where(batch.mask > 0, 1 - batch.labels, 2).long()
        rows = batch.rows[(kind * len(p["items"]) + batch.rows).argsort()]
        scores = self._scores(p, p["items"])[rows]
        positives = (batch.labels * batch.mask).sum()
        negatives = batch.mask.sum() - positives
        place = torch.arange(len(rows), device=rows.device)
        turn = self.negatives * place[:, None] + torch.arange(self.negatives, device=rows.device)
        partner = positives.long() + (turn + _STRIDE * context.round) % negatives.long().clamp(min=1)
        real = ((place < positives) & (negatives > 0)).to(scores.dtype)
        pairs = softplus(scores[partner.clamp(max=len(rows) - 1)] - scores[:, None]).mean(-1)
        return (real * pairs).sum() / real.sum().clamp(min=1)


_STRIDE = 7919
"""By how many negatives the pairing moves on from round to round; prime, so that all get their turn."""
