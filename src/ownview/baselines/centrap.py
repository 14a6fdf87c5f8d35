"""CentRAP: FedRAP's model, trained on everybody's data at once.

Li, Long and Zhou, "Federated Recommendation with Additive Personalization", ICLR 2024, who hold FedRAP against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ownview.base.randomness import derive, generator
from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.parts.epoch_samples import Samples, labelled
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.parts.curriculum import CURRICULA, strength
from ownview.seam.initial import Normal, Uniform
from ownview.seam.training import Params

_USERS = 256
"""Users whose private rows are multiplied out at once: bounds memory."""


@dataclass(frozen=True)
class CentRAP(OneShot):
    """score = w_u . (d_ui + c_i) + b_u: per user a vector, a bias and a table D_u, and one table C for all.

    loss of a sample = cross-entropy - lambda(a) mean (d - c)^2 + mu(a) mean |c|, the means over the dimensions, a the
    epoch. Plain SGD on the sum over a batch. A batch holds samples of many users, so C moves by all of them at once,
    where FedRAP averages what each user alone makes of it.
    """

    name: ClassVar[str] = "centrap"
    title: ClassVar[str] = "CentRAP"
    summary: ClassVar[str] = "FedRAP's model trained on everybody's data at once"
    paper: ClassVar[str] = "Li et al., ICLR 2024"

    embedding_size: int = setting(32, "length of item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    epochs: int = setting(50, "passes over all samples", low=1, search=Between(10, 100))
    batch_size: int = setting(2048, "samples in a batch", low=1)
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each epoch", low=1, high=100, search=Between(1, 10)
    )
    network_rate: float = setting(
        0.005, "SGD's rate for w and b, per sample", above=0, search=Between(1e-4, 0.1, log=True)
    )
    own_rate: float = setting(
        0.15, "SGD's rate for the private tables, per sample", above=0, search=Between(0.01, 1.0, log=True)
    )
    common_rate: float = setting(
        0.15, "SGD's rate for the common table, per sample", above=0, search=Between(0.01, 1.0, log=True)
    )
    epoch_decay: float = setting(0.97, "factor on all rates after every epoch", above=0, high=1)
    apart: float = setting(
        1e-3, "v1, the most weight of the tables' difference", low=0, search=Between(1e-5, 1.0, log=True)
    )
    sparse: float = setting(
        1e-3, "v2, the most weight of the common table's norm", low=0, search=Between(1e-5, 1.0, log=True)
    )
    curriculum: str = setting("tanh", "how both weights go with the epochs", choices=CURRICULA)

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """The private tables, once every row has been touched; what else there is is small beside them."""
        return 4 * num_users * num_items * self.embedding_size

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Learn; of the private tables only w_u . d_ui comes back, which is all that prediction needs."""
        values = _start(split, self.embedding_size, seed)
        sampler = NegativeSampler(excluded, split.num_items, self.negatives, split.data.users)
        for epoch in range(1, self.epochs + 1):
            users, items, labels = labelled(split.train, sampler, derive(seed, "negatives", epoch))
            order = torch.randperm(len(users), generator=generator(seed, "shuffle", epoch))
            for batch in torch.split(order, self.batch_size):
                self._step(values, (users[batch], items[batch], labels[batch]), epoch)
        return {
            "weight": values["weight"],
            "bias": values["bias"],
            "common": values["common"],
            "own": _own_scores(values),
        }

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] w_u . d_ui + w_u . c_i + b_u."""
        common = learned["weight"][asked.users] @ learned["common"].T
        return learned["own"][asked.users] + common + learned["bias"][asked.users, None]

    def _step(self, values: Params, samples: Samples, epoch: int) -> None:
        """One step of SGD, on the rows that the batch touches and nothing else."""
        users, items, labels = samples
        m = len(values["common"])
        places = {"weight": users, "bias": users, "change": users * m + items, "common": items}
        rows = {name: values[name].index_select(0, place).requires_grad_() for name, place in places.items()}
        own = values["start"].index_select(0, items) + rows["change"]
        scores = (rows["weight"] * (own + rows["common"])).sum(-1) + rows["bias"]
        loss = binary_cross_entropy_with_logits(scores, labels, reduction="sum")
        grown = strength(self.curriculum, epoch)
        loss = loss - self.apart * grown * (own - rows["common"]).square().mean(-1).sum()
        loss = loss + self.sparse * grown * rows["common"].abs().mean(-1).sum()
        rates = {"change": self.own_rate, "common": self.common_rate}
        for (name, place), grad in zip(places.items(), torch.autograd.grad(loss, list(rows.values())), strict=True):
            rate = rates.get(name, self.network_rate) * self.epoch_decay ** (epoch - 1)
            values[name].index_add_(0, place, grad, alpha=-rate)


def _start(split: Split, size: int, seed: int) -> Params:
    """FedRAP's initial values: those of one client, for every user.

    Private tables are kept as changes of their common start. NumPy's zeros take memory only once they are written, so
    pairs that are never sampled cost nothing.
    """
    n, m = split.num_users, split.num_items
    linear, normal = Uniform(1 / math.sqrt(size)), Normal(1.0)
    return {
        "weight": linear.draw((size,), generator(seed, "initial:weight")).repeat(n, 1),
        "bias": linear.draw((), generator(seed, "initial:bias")).repeat(n),
        "common": normal.draw((m, size), generator(seed, "initial:common")),
        "start": normal.draw((m, size), generator(seed, "initial:own")),
        "change": torch.from_numpy(np.zeros((n * m, size), dtype=np.float32)),
    }


def _own_scores(values: Params) -> Tensor:
    """[n, m] w_u . d_ui."""
    weight, start = values["weight"], values["start"]
    change = values["change"].view(len(weight), len(start), -1)
    return torch.cat(
        [
            torch.einsum("umd,ud->um", part, some) + some @ start.T
            for part, some in zip(torch.split(change, _USERS), torch.split(weight, _USERS), strict=True)
        ]
    )
