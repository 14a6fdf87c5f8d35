"""Vectors of people that fit a table of items and what is known of these people's interactions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ownview.base.randomness import generator

_STEPS, _RATE = 30, 0.1


class People:
    """[n, d] vectors, fitted anew to every table from where they were.

    Args:
        count: n.
        users: [k] whose interactions are known.
        items: [k] with what.
        seed: of the first vectors, and of the items that they are compared with.
    """

    def __init__(self, count: int, users: Tensor, items: Tensor, seed: int) -> None:
        self.count, self.users, self.items, self.seed = count, users, items, seed
        self.vectors: Tensor | None = None

    def fitted(self, table: Tensor) -> Tensor:
        """[n, d] by pairwise logistic loss and Adam; those of whom nothing is known stay as they were drawn.

        Args:
            table: [m, d].
        """
        random = generator(self.seed, "vectors")
        if self.vectors is None:
            self.vectors = 0.01 * torch.randn(self.count, table.shape[1], generator=random).double()
        people = self.vectors.clone().requires_grad_()
        steps = torch.optim.Adam([people], _RATE)
        for _ in range(_STEPS):
            others = torch.randint(len(table), self.items.shape, generator=random)
            apart = (people[self.users] * (table[self.items] - table[others])).sum(1)
            steps.zero_grad()
            (people.grad,) = torch.autograd.grad(-logsigmoid(apart).sum(), people)
            steps.step()
        self.vectors = people.detach()
        return self.vectors
