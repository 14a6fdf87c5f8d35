"""FedRecAttack (Rong et al., ICDE 2022) knows some of everybody's interactions.

It finds vectors of people for them (`people`), and goes down the gradient in all items of

    sum over people without the target of g(u . worst of their ten - u . t), g(x) = x, below 0 e^x - 1

Every liar sends some rows of it: the target's, and others that were drawn by their length, each of length 1 at most;
the next liar sends of what is left. Before there are two tables liars do honest work on their fake history.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import Crew
from ownview.attacks.dishonest.published.people import People
from ownview.attacks.dishonest.published.table_attack import TableAttack
from ownview.base.randomness import generator
from ownview.messages.upload import Upload
from ownview.seam.training import Params

_KNOWN = 0.05
"""Share of all interactions that are known."""
_ROWS, _LONGEST = 60, 1.0
"""Rows of the gradient that one liar sends, and their length at most."""
_LIST = 10


class FedRecAttack(TableAttack):
    """See above.

    Args:
        crew: of the liars.
    """

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        self.left: Tensor | None = None
        """[m, d] of the gradient, what no liar has sent yet in this round."""
        self.rows: dict[int, Tensor] = {}
        """[k] items by liar, that it sends rows of."""

    def begin(self, received: Params) -> None:
        """See `TableAttack`."""
        super().begin(received)
        self.left = None

    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """A liar's share of the gradient; what is sent is left to no other."""
        if self.before is None:
            return None
        if self.left is None:
            self.left = self.gradient(table)
        client = int(upload.clients[0])
        if client not in self.rows:
            self.rows[client] = self._drawn(client, self.left)
        rows = self.left[self.rows[client]]
        rows = rows * (_LONGEST / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1.0)
        self.left[self.rows[client]] -= rows
        return self.rows[client], -rows

    def gradient(self, table: Tensor) -> Tensor:
        """[m, d] of all items, by the vectors of people that fit what is known of them."""
        people, target = self._people.fitted(table), self.crew.target
        known = torch.zeros(len(people), len(table), dtype=torch.bool)
        known[self.known] = True
        meant = (~known[:, target]).nonzero()[:, 0]
        known[:, target] = True  # the worst of their ten other items is what the target has to pass
        scores = (people @ table.T).masked_fill(known, -torch.inf)
        worst = scores.topk(min(_LIST, len(table) - 1), dim=1).indices[meant, -1]
        moving = table.clone().requires_grad_()
        apart = (people[meant] * (moving[worst] - moving[target])).sum(1)
        loss = torch.where(apart > 0, apart, torch.expm1(apart.clamp(max=0))).sum()
        return torch.autograd.grad(loss, moving)[0]

    @cached_property
    def known(self) -> tuple[Tensor, Tensor]:
        """[k] people and [k] items of the interactions that everybody may see."""
        train, random = self.crew.split.training_items(), generator(self.crew.seed, "known interactions")
        people = torch.repeat_interleave(torch.arange(len(train)), train.lengths)
        some = torch.randperm(len(people), generator=random)[: round(_KNOWN * len(people))].sort().values
        return people[some], train.values[some]

    @cached_property
    def _people(self) -> People:
        return People(self.crew.split.num_users, *self.known, self.crew.seed)

    def _drawn(self, client: int, gradient: Tensor) -> Tensor:
        """[k] the target and other items, drawn by the lengths of their rows."""
        lengths = gradient.norm(dim=1)
        lengths[self.crew.target] = 0.0
        number, random = min(_ROWS - 1, int((lengths > 0).sum())), generator(self.crew.seed, "rows", client)
        others = torch.multinomial(lengths, number, generator=random) if number else torch.zeros(0, dtype=torch.long)
        return torch.cat([torch.tensor([self.crew.target]), others])
