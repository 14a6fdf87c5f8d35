"""MF: matrix factorisation on implicit feedback, trained on everybody's data at once.

Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems", Computer 2009; with the
cross-entropy and the sampled negatives of the papers that compare with it.
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
from ownview.seam.initial import Normal
from ownview.seam.portable import Factors, Logistic, Portable
from ownview.seam.training import Params

_NAMES = ("users", "items")


@dataclass(frozen=True)
class MF(InEpochs):
    """score = u . q_i.

    loss of a batch = mean over its samples of cross-entropy + decay / 2 (|u|^2 + |q|^2).
    """

    name: ClassVar[str] = "mf"
    title: ClassVar[str] = "MF"
    summary: ClassVar[str] = "matrix factorisation on everybody's data at once"
    paper: ClassVar[str] = "Koren et al. 2009"

    embedding_size: int = setting(32, "length of user and item vectors", low=1, search=OneOf((16, 32, 64, 128)))
    learning_rate: float = setting(0.005, "Adam's rate", above=0, search=Between(1e-4, 0.03, log=True))
    decay: float = setting(
        0.01, "weight of the squared vectors of a sample", low=0, search=Between(1e-5, 0.1, log=True)
    )
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each epoch", low=1, high=100, search=Between(1, 10)
    )
    batch_size: int = setting(2048, "samples in a batch", low=1)
    spread: float = setting(0.1, "standard deviation of the initial vectors", above=0)

    def start(self, lessons: Lessons) -> Params:
        """Gaussian vectors."""
        counts = (lessons.num_users, lessons.num_items)
        draw, size = Normal(self.spread).draw, self.embedding_size
        tables = zip(_NAMES, counts, strict=True)
        return with_memory({k: draw((n, size), generator(lessons.seed, f"initial:{k}")) for k, n in tables})

    def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
        """Adam on batches of samples of all users."""
        total, count = torch.zeros((), device=lessons.device), 0
        for users, items, labels in labelled_batches(lessons, number, self.negatives, self.batch_size):
            tables = [values[name].detach().requires_grad_() for name in _NAMES]
            mine, theirs = embedding(users, tables[0]), embedding(items, tables[1])
            loss = binary_cross_entropy_with_logits((mine * theirs).sum(-1), labels)
            penalty = (mine.square() + theirs.square()).sum(-1).mean() / 2
            adam_step(values, _NAMES, torch.autograd.grad(loss + self.decay * penalty, tables), self.learning_rate)
            total += loss.detach() * len(users)
            count += len(users)
        return float(total) / count

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] u . q_i."""
        return learned["users"][asked.users] @ learned["items"].T

    def portable(self, learned: Params) -> Portable:
        """Item vectors; a device fits its own user vector."""
        return Factors(learned["items"], Logistic(self.negatives))
