"""NCF: a network over user and item vector, trained on everybody's data at once.

He, Liao, Zhang, Nie, Hu and Chua, "Neural Collaborative Filtering", WWW 2017; the network alone, in three layers, as
the papers that compare with it run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, embedding

from ownview.base.randomness import generator
from ownview.baselines.parts.central import Asked, InEpochs, Lessons
from ownview.baselines.parts.central_adam import adam_step, with_memory
from ownview.baselines.parts.epoch_samples import labelled_batches
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.network import Network
from ownview.seam.initial import Normal
from ownview.seam.roles import PRIVATE
from ownview.seam.training import Params

_CELLS = 2**25
"""Numbers in the first hidden layer while all items are scored: bounds memory to about 130 MB a layer."""


@dataclass(frozen=True)
class NCF(InEpochs):
    """score = MLP([u, q_i]), ReLU inside. The default network is 2d-d-d/2-d/4-1, as FedNCF's here."""

    name: ClassVar[str] = "ncf"
    title: ClassVar[str] = "NCF"
    summary: ClassVar[str] = "a network over user and item vector, on everybody's data at once"
    paper: ClassVar[str] = "He et al., WWW 2017"

    embedding_size: int = setting(32, "d, length of user and item vectors", low=4, search=OneOf((16, 32, 64, 128)))
    hidden_layers: tuple[int, ...] = setting((), "widths of hidden layers; none given: d, d/2, d/4", low=1)
    learning_rate: float = setting(0.003, "Adam's rate", above=0, search=Between(1e-4, 0.03, log=True))
    decay: float = setting(0.0, "weight of the squared vectors of a sample", low=0, search=Between(1e-5, 0.1, log=True))
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each epoch", low=1, high=100, search=Between(1, 10)
    )
    batch_size: int = setting(2048, "samples in a batch", low=1)
    spread: float = setting(0.1, "standard deviation of the initial vectors", above=0)

    @property
    def network(self) -> Network:
        """The layers of the score."""
        size = self.embedding_size
        return Network(size, self.hidden_layers or (size, size // 2, size // 4))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all trained values."""
        return ("users", "items", *self.network.params(PRIVATE))

    def start(self, lessons: Lessons) -> Params:
        """Gaussian vectors; layers of k inputs uniform within 1 / sqrt(k)."""
        size, normal = self.embedding_size, Normal(self.spread)
        drawn = {
            "users": normal.draw((lessons.num_users, size), generator(lessons.seed, "initial:users")),
            "items": normal.draw((lessons.num_items, size), generator(lessons.seed, "initial:items")),
        }
        for name, param in self.network.params(PRIVATE).items():
            drawn[name] = param.initial.draw(param.shape, generator(lessons.seed, f"initial:{name}"))
        return with_memory(drawn)

    def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
        """Adam on batches of samples of all users."""
        total, count = torch.zeros((), device=lessons.device), 0
        for users, items, labels in labelled_batches(lessons, number, self.negatives, self.batch_size):
            p = {name: values[name].detach().requires_grad_() for name in self.names}
            mine, theirs = embedding(users, p["users"]), embedding(items, p["items"])
            first = torch.cat([mine, theirs], dim=-1) @ p["weight0"] + p["bias0"]
            loss = binary_cross_entropy_with_logits(self.network.output(p, first), labels)
            penalty = (mine.square() + theirs.square()).sum(-1).mean() / 2
            grads = torch.autograd.grad(loss + self.decay * penalty, list(p.values()))
            adam_step(values, self.names, grads, self.learning_rate)
            total += loss.detach() * len(users)
            count += len(users)
        return float(total) / count

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] MLP([u, q_i])."""
        # Each half of the first layer is the same for all pairs it stands in, so both are worked out once.
        upper, lower = torch.split(learned["weight0"], self.embedding_size)
        theirs = learned["items"] @ lower + learned["bias0"]
        at_once = max(1, _CELLS // theirs.numel())
        mine = learned["users"][asked.users] @ upper
        return torch.cat([self.network.output(learned, part[:, None] + theirs) for part in torch.split(mine, at_once)])
