"""PipAttack (Zhang et al., WSDM 2022) knows how popular items are, and makes the target's row look popular.

A small network learns from the table that the server sends to tell an item's class of popularity by its row
(cross-entropy, every class with the same weight in all). The target's row t goes down

    mean over liars of -log sigma(u . t)  +  ALPHA (-log of the chance that t is of the most popular class)
        +  GAMMA |its change - that of the liar's honest work|^2

by some steps of Adam, u vectors that fit the liars' fake histories (`people`): explicit promotion, popularity, and the
distance to what is honest. A liar sends its honest work with this row in it. Before there are two tables it does honest
work alone.

The paper's network, classes and weights are not known to us in every number: three classes of a tenth, the next third
and the rest, a layer of 32, and the weights below are ours; nothing of it was tuned.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid

from ownview.attacks.dishonest.crew import Crew
from ownview.attacks.dishonest.published.people import People
from ownview.attacks.dishonest.published.table_attack import TableAttack
from ownview.base.randomness import generator
from ownview.messages.upload import Upload
from ownview.seam.training import Params

_ALPHA, _GAMMA = 1.0, 0.01
_CLASSES = (0.1, 0.43)
"""Shares of the items, most popular first, at which the second and the third class begin."""
_WIDTH, _LESSONS, _LEARNING = 32, 100, 0.01
"""Of the network: its inner layer, steps at every table, and their rate."""
_STEPS, _RATE = 30, 0.1
"""Of the target's row."""


class PipAttack(TableAttack):
    """See above.

    Args:
        crew: of the liars.
    """

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        self.network: list[Tensor] | None = None
        """Weights and shifts of two layers."""
        self.people: Tensor | None = None
        """[l, d] vectors of the liars."""

    def begin(self, received: Params) -> None:
        """See `TableAttack`."""
        super().begin(received)
        if self.before is not None and self.table is not None:
            self.people = self._liars.fitted(self.table)
            self._learn(self.table)

    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """The liar's honest work, with another row for the target."""
        if self.network is None:
            return None
        ((_, rows),) = upload.rows.items()
        items, changes = upload.items[upload.touched].cpu(), rows[upload.touched].detach().double().cpu()
        own = items == self.crew.target
        honest = changes[own].sum(0)
        target = self._moved(table[self.crew.target], honest) - table[self.crew.target]
        items = torch.cat([torch.tensor([self.crew.target]), items[~own]])
        return items, torch.cat([target[None], changes[~own]])

    def loss(self, row: Tensor, start: Tensor, honest: Tensor) -> Tensor:
        """[] of the target's row [d] that began at `start`, beside the change [d] of honest work."""
        assert self.people is not None
        promotion = -logsigmoid(self.people @ row).mean()
        popularity = cross_entropy(self.classed(row[None]), torch.zeros(1, dtype=torch.long))
        return promotion + _ALPHA * popularity + _GAMMA * (row - start - honest).square().sum()

    def classed(self, rows: Tensor) -> Tensor:
        """[k, 3] logits of the classes of popularity of rows [k, d]; the first is the most popular."""
        assert self.network is not None
        inner, shift, outer, outer_shift = self.network
        return torch.relu(rows @ inner + shift) @ outer + outer_shift

    @cached_property
    def classes(self) -> Tensor:
        """[m] by how many people have an item, 0 the most popular; the target as it is."""
        rank = torch.empty_like(self.crew.takers)
        rank[self.crew.takers.argsort(descending=True, stable=True)] = torch.arange(len(rank))
        bounds = [max(place + 1, round(share * len(rank))) for place, share in enumerate(_CLASSES)]
        return sum(((rank >= bound).long() for bound in bounds), torch.zeros_like(rank))

    def _moved(self, start: Tensor, honest: Tensor) -> Tensor:
        """[d] the target's row after all steps."""
        row = start.clone().requires_grad_()
        steps = torch.optim.Adam([row], _RATE)
        for _ in range(_STEPS):
            (row.grad,) = torch.autograd.grad(self.loss(row, start, honest), row)
            steps.step()
        return row.detach()

    def _learn(self, table: Tensor) -> None:
        """Teach the network the classes by the rows of a table; it goes on from the last one."""
        if self.network is None:
            random, width = generator(self.crew.seed, "popularity"), table.shape[1]
            drawn = [torch.randn(shape, generator=random).double() for shape in ((width, _WIDTH), (_WIDTH, 3))]
            inner, outer = (one / len(one) ** 0.5 for one in drawn)
            self.network = [inner, torch.zeros(_WIDTH).double(), outer, torch.zeros(3).double()]
        self.network = [one.clone().requires_grad_() for one in self.network]
        counts = torch.bincount(self.classes, minlength=3).clamp(min=1).double()
        steps = torch.optim.Adam(self.network, _LEARNING)
        for _ in range(_LESSONS):
            loss = cross_entropy(self.classed(table), self.classes, weight=1 / counts)
            for one, slope in zip(self.network, torch.autograd.grad(loss, self.network), strict=True):
                one.grad = slope
            steps.step()
        self.network = [one.detach() for one in self.network]

    @cached_property
    def _liars(self) -> People:
        """Everything is known of the liars' own histories."""
        histories = self.crew.infiltrated().train
        users = torch.repeat_interleave(torch.arange(self.crew.count), histories.lengths[self.crew.members])
        items = torch.cat([histories.of(user) for user in self.crew.members.tolist()])
        return People(self.crew.count, users, items, self.crew.seed)
