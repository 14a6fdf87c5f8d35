"""PIECK (Zhang et al., ICDE 2024) knows nothing but the tables that the server sends.

Items whose rows change the most from the first table to the second are popular, P of them; the target's row t goes down
the gradient of

    pieck-ipe   - tau (mean of w_p cos(p, t) over p with cos > 0, and the same over the others), w_p falls with the rank
    pieck-uea   mean over P of -log sigma(p . t): rows of popular items stand for the vectors of people

Before there are two tables liars do honest work on their fake history.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, logsigmoid

from ownview.attacks.dishonest.crew import PIECK_IPE, Crew
from ownview.attacks.dishonest.published.table_attack import TableAttack
from ownview.messages.upload import Upload
from ownview.seam.training import Params

_POPULAR, _TAU = 10, 0.9


class Pieck(TableAttack):
    """See above; the crew's means says which loss.

    Args:
        crew: of the liars.
    """

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        self.popular: Tensor | None = None
        """[P] items whose rows changed the most from the first table to the second, the most first."""

    def begin(self, received: Params) -> None:
        """See `TableAttack`."""
        super().begin(received)
        if self.popular is None and self.before is not None and self.table is not None:
            moved = (self.table - self.before).norm(dim=1)
            moved[self.crew.target] = -1.0
            self.popular = moved.topk(min(_POPULAR, len(moved) - 1)).indices

    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """The target's row alone."""
        if self.popular is None:
            return None
        target = table[self.crew.target].clone().requires_grad_()
        loss = self._loss(table[self.popular], target)
        return torch.tensor([self.crew.target]), -torch.autograd.grad(loss, target)[0][None]

    def _loss(self, popular: Tensor, target: Tensor) -> Tensor:
        """[] of the target's row [d], by the rows [P, d] of popular items."""
        if self.crew.means != PIECK_IPE:
            return -logsigmoid(popular @ target).mean()
        weights = torch.arange(len(popular), 0, -1).to(popular)
        alike = weights / weights.sum() * cosine_similarity(popular, target[None])
        parts = [part.mean() for part in (alike[alike > 0], alike[alike <= 0]) if len(part)]
        return -_TAU * torch.stack(parts).sum()
