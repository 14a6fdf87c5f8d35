"""Attacks of the literature on item tables that clients train and send the changes of (promote alone).

PIECK (Zhang et al., ICDE 2024) knows nothing but the tables that the server sends. Items whose rows change the most
from the first table to the second are popular, P of them; the target's row t goes down the gradient of

    pieck-ipe   - tau (mean of w_p cos(p, t) over p with cos > 0, and the same over the others), w_p falls with the rank
    pieck-uea   mean over P of -log sigma(p . t): rows of popular items stand for the vectors of people

FedRecAttack (Rong et al., ICDE 2022) knows some of everybody's interactions as well. It finds vectors of people for
them (pairwise logistic loss, Adam), and goes down the gradient in all items of

    fedrecattack   sum over people without the target of g(u . worst of their ten - u . t), g(x) = x, below 0 e^x - 1

Every liar sends some rows of it: the target's, and others that were drawn by their length, each of length 1 at most;
the next liar sends of what is left. Ours differ from the papers in what clients send: not one gradient for a rate of
the server's, but a round's change, brought to one or ten times the length of the median honest one. Before there are
two tables liars do honest work on their fake history.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, logsigmoid

from ownview.attacks.dishonest.crew import FEDRECATTACK, PIECK_IPE, PROMOTE, Crew
from ownview.base.errors import SettingError
from ownview.base.randomness import generator
from ownview.messages.upload import Upload
from ownview.seam.training import Params

_POPULAR, _TAU = 10, 0.9
_KNOWN = 0.05
"""Share of all interactions that FedRecAttack knows."""
_ROWS, _LONGEST = 60, 1.0
"""Rows of the gradient that one liar sends, and their length at most."""
_STEPS, _RATE, _LIST = 30, 0.1, 10


@dataclass
class Published:
    """One such attack, over all rounds.

    Args:
        crew: of the liars, whose means it is.
    """

    crew: Crew
    table: Tensor | None = None
    """[m, d] that the server has sent last."""
    popular: Tensor | None = None
    """[P] items whose rows changed the most from the first table to the second, the most first."""
    people: Tensor | None = None
    """[n, d] vectors that FedRecAttack has found."""
    left: Tensor | None = None
    """[m, d] of FedRecAttack's gradient, what no liar has sent yet in this round."""
    rows: dict[int, Tensor] = field(default_factory=dict)
    """[k] items by liar, that FedRecAttack has it send rows of."""

    def begin(self, received: Params) -> None:
        """A round begins with what the server has sent."""
        tables = [one for one in received.values() if one.dim() == 2 and len(one) == self.crew.split.num_items]
        self._require(one_table=len(received) == len(tables) == 1)
        before, self.table, self.left = self.table, tables[0].detach().double().cpu(), None
        if before is not None and self.popular is None:
            moved = (self.table - before).norm(dim=1)
            moved[self.crew.target] = -1.0
            self.popular = moved.topk(min(_POPULAR, len(moved) - 1)).indices

    def lie(self, upload: Upload) -> Upload:
        """What one liar sends in the place of its honest work, of any length; honest work before there is a change."""
        self._require(one_table=len(upload.rows) == 1 and not upload.sums and not upload.whole)
        if self.table is None or self.popular is None:
            return upload
        if self.crew.means == FEDRECATTACK:
            items, rows = self._of_known_people(int(upload.clients[0]), self.table)
        else:
            items, rows = torch.tensor([self.crew.target]), self._of_popular(self.table[self.popular], self.table)
        ((name, like),) = upload.rows.items()
        return replace(
            upload,
            items=items[None].to(upload.items.device),
            touched=torch.ones_like(items[None], dtype=torch.bool, device=upload.items.device),
            rows={name: -rows[None].to(like)},
        )

    def _require(self, *, one_table: bool) -> None:
        if self.crew.goal != PROMOTE or not one_table:
            raise SettingError(
                f"{self.crew.means}: promotes items of methods that send one table of items, as fedmf does"
            )

    def _of_popular(self, popular: Tensor, table: Tensor) -> Tensor:
        """[1, d] gradient of the target's row."""
        target = table[self.crew.target].clone().requires_grad_()
        if self.crew.means == PIECK_IPE:
            weights = torch.arange(len(popular), 0, -1).to(table)
            alike = weights / weights.sum() * cosine_similarity(popular, target[None])
            parts = [part.mean() for part in (alike[alike > 0], alike[alike <= 0]) if len(part)]
            loss = -_TAU * torch.stack(parts).sum()
        else:
            loss = -logsigmoid(popular @ target).mean()
        return torch.autograd.grad(loss, target)[0][None]

    def _of_known_people(self, client: int, table: Tensor) -> tuple[Tensor, Tensor]:
        """[k] items and [k, d] their share of the gradient; what is sent is left to no other liar."""
        if self.left is None:
            self.left = self._gradient(table)
        if client not in self.rows:
            lengths = self.left.norm(dim=1)
            lengths[self.crew.target] = 0.0
            number, random = min(_ROWS - 1, int((lengths > 0).sum())), generator(self.crew.seed, "rows", client)
            others = (
                torch.multinomial(lengths, number, generator=random) if number else torch.zeros(0, dtype=torch.long)
            )
            self.rows[client] = torch.cat([torch.tensor([self.crew.target]), others])
        rows = self.left[self.rows[client]]
        rows = rows * (_LONGEST / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1.0)
        self.left[self.rows[client]] -= rows
        return self.rows[client], rows

    def _gradient(self, table: Tensor) -> Tensor:
        """[m, d] of all items, by the vectors of people that fit what is known of them."""
        users, items = self.known
        people = self._fitted(table, users, items)
        known = torch.zeros(len(people), len(table), dtype=torch.bool)
        known[users, items] = True
        meant = (~known[:, self.crew.target]).nonzero()[:, 0]
        known[:, self.crew.target] = True  # the worst of their ten other items is what the target has to pass
        scores = (people @ table.T).masked_fill(known, -torch.inf)
        worst = scores.topk(min(_LIST, len(table) - 1), dim=1).indices[meant, -1]
        moving = table.clone().requires_grad_()
        apart = (people[meant] * (moving[worst] - moving[self.crew.target])).sum(1)
        loss = torch.where(apart > 0, apart, torch.expm1(apart.clamp(max=0))).sum()
        return torch.autograd.grad(loss, moving)[0]

    @cached_property
    def known(self) -> tuple[Tensor, Tensor]:
        """[k] people and [k] items of the interactions that everybody may see."""
        train, random = self.crew.split.training_items(), generator(self.crew.seed, "known interactions")
        people = torch.repeat_interleave(torch.arange(len(train)), train.lengths)
        some = torch.randperm(len(people), generator=random)[: round(_KNOWN * len(people))].sort().values
        return people[some], train.values[some]

    def _fitted(self, table: Tensor, users: Tensor, items: Tensor) -> Tensor:
        """[n, d] vectors of all people; those of whom nothing is known stay as they were drawn."""
        random = generator(self.crew.seed, "vectors")
        if self.people is None:
            self.people = 0.01 * torch.randn(self.crew.split.num_users, table.shape[1], generator=random).double()
        people = self.people.clone().requires_grad_()
        steps = torch.optim.Adam([people], _RATE)
        for _ in range(_STEPS):
            others = torch.randint(len(table), items.shape, generator=random)
            apart = (people[users] * (table[items] - table[others])).sum(1)
            steps.zero_grad()
            (people.grad,) = torch.autograd.grad(-logsigmoid(apart).sum(), people)
            steps.step()
        self.people = people.detach()
        return self.people
