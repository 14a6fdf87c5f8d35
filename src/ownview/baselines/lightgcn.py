"""LightGCN: vectors smoothed over the graph of users and items, trained on everybody's data at once.

He, Deng, Wang, Li, Zhang and Wang, "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation",
SIGIR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding, pad, softplus

from ownview.base.randomness import generator
from ownview.baselines.parts.central import Asked, InEpochs, Lessons
from ownview.baselines.parts.central_adam import adam_step, with_memory
from ownview.baselines.parts.epoch_samples import paired_batches
from ownview.baselines.parts.sparse import compressed_rows
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.initial import Normal
from ownview.seam.training import Params


@dataclass(frozen=True)
class LightGCN(InEpochs):
    """score = e_u . e_i, where E = (X + A X + ... + A^K X) / (K + 1) over the vectors X of all users and items.

    A is the graph of training pairs, each edge weighing 1 / sqrt(degree of the user x degree of the item).
    loss of a batch = mean over its pairs of softplus(score of the negative - score of the positive)
    + decay / 2 (|x_u|^2 + |x_i|^2 + |x_j|^2), the last over the vectors before smoothing.
    """

    name: ClassVar[str] = "lightgcn"
    title: ClassVar[str] = "LightGCN"
    summary: ClassVar[str] = "vectors smoothed over the graph of users and items, on everybody's data at once"
    paper: ClassVar[str] = "He et al., SIGIR 2020"

    embedding_size: int = setting(64, "length of user and item vectors", low=1, search=OneOf((16, 32, 64, 128)))
    layers: int = setting(3, "K, how often vectors are smoothed", low=0, high=10, search=Between(1, 4))
    learning_rate: float = setting(0.001, "Adam's rate", above=0, search=Between(1e-4, 0.03, log=True))
    decay: float = setting(1e-4, "weight of the squared vectors of a pair", low=0, search=Between(1e-6, 0.01, log=True))
    batch_size: int = setting(2048, "pairs in a batch", low=1)
    spread: float = setting(0.1, "standard deviation of the initial vectors", above=0)

    def start(self, lessons: Lessons) -> Params:
        """One table of Gaussian vectors, users first."""
        nodes = lessons.num_users + lessons.num_items
        drawn = Normal(self.spread).draw((nodes, self.embedding_size), generator(lessons.seed, "initial:vectors"))
        return with_memory({"vectors": drawn})

    def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
        """Adam on batches of pairs; the whole graph is smoothed over once for every batch, forth and back.

        Smoothing is linear and A symmetric, so the gradient by X is the smoothed gradient by E: no need to keep
        what the layers gave in between.
        """
        graph, vectors = adjacency(lessons), values["vectors"]
        total, count = torch.zeros((), device=lessons.device), 0
        for users, items, others in paired_batches(lessons, number, self.batch_size):
            places = torch.stack([users, lessons.num_users + items, lessons.num_users + others])
            smoothed = smooth(graph, vectors, self.layers).requires_grad_()
            mine, liked, other = embedding(places, smoothed)
            loss = softplus((mine * (other - liked)).sum(-1)).mean()
            (by_smoothed,) = torch.autograd.grad(loss, smoothed)
            # The penalty's gradient: a vector that stands c times in the batch of B pairs is pulled by decay c / B.
            times = torch.bincount(places.reshape(-1), minlength=len(vectors)) / len(users)
            grad = smooth(graph, by_smoothed, self.layers).add_(self.decay * times[:, None] * vectors)
            adam_step(values, ("vectors",), (grad,), self.learning_rate)
            total += loss.detach() * len(users)
            count += len(users)
        return float(total) / count

    def learned(self, values: Params, lessons: Lessons) -> Params:
        """The smoothed vectors."""
        smoothed = smooth(adjacency(lessons), values["vectors"], self.layers)
        users, items = torch.split(smoothed, [lessons.num_users, lessons.num_items])
        return {"users": users, "items": items}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] e_u . e_i."""
        return learned["users"][asked.users] @ learned["items"].T


def adjacency(lessons: Lessons) -> Tensor:
    """[n + m, n + m] the normalised graph as a sparse matrix of compressed rows; nodes without edges have none."""
    n, nodes = lessons.num_users, lessons.num_users + lessons.num_items
    lengths, items = lessons.items.lengths, lessons.items.values
    users = torch.repeat_interleave(torch.arange(n, device=lessons.device), lengths)
    by_item = torch.argsort(items, stable=True)
    rows = torch.cat([users, n + items[by_item]])
    columns = torch.cat([n + items, users[by_item]])
    degree = torch.bincount(rows, minlength=nodes)
    weight = (degree[rows].float() * degree[columns]).rsqrt()
    offsets = pad(degree.cumsum(0), (1, 0))
    return compressed_rows(offsets, columns, weight, (nodes, nodes))


def smooth(graph: Tensor, vectors: Tensor, layers: int) -> Tensor:
    """[n + m, d] the mean of X, A X, ..., A^K X."""
    total, layer = vectors.clone(), vectors
    for _ in range(layers):
        layer = graph @ layer
        total += layer
    return total.div_(layers + 1)
