"""Spattack (Zhang et al., AAAI 2025): few clients send a row of the table, so few liars outweigh them there.

It degrades all lists, with one of two kinds of knowledge and one of two reaches:

    spattack-o-d, spattack-o-s   liars know all honest changes, and together send minus their sum: nothing moves
    spattack-l-d, spattack-l-s   they know nothing: all send the same noise, drawn once from N(0, 1)

-d of every row, -s of as many rows as the honest client that sends the most, drawn once by how popular items are. The
first two are as long as that makes them; of noise the paper leaves the length open. They begin in the first round.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import DEGRADE, SPATTACK_LD, SPATTACK_OD, Crew
from ownview.attacks.dishonest.published.table_attack import TableAttack
from ownview.base.randomness import generator
from ownview.messages.upload import Upload
from ownview.seam.training import Params


class _Spattack(TableAttack):
    """What both kinds have in common: which rows a liar sends.

    Args:
        crew: of the liars.
    """

    goal: ClassVar[str] = DEGRADE

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        self.dense = crew.means in (SPATTACK_OD, SPATTACK_LD)
        self.most = 0
        """Rows that an honest client has sent at most."""
        self.drawn: dict[int, Tensor] = {}
        """[k] items by liar."""

    def overhear(self, honest: Upload, weights: Tensor) -> None:
        """How many rows honest clients send."""
        super().overhear(honest, weights)
        self.most = max(self.most, int(honest.touched.sum(1).max()))

    def items_of(self, client: int) -> Tensor:
        """[k] whose rows a liar sends, ascending; none, and nothing drawn, before an honest client has sent some."""
        if self.dense:
            return torch.arange(self.crew.split.num_items)
        if client not in self.drawn:
            chances = self.crew.takers.double()
            number = min(self.most, int((chances > 0).sum()))
            if number == 0:
                return torch.empty(0, dtype=torch.long)
            random = generator(self.crew.seed, "attacked rows", client)
            self.drawn[client] = torch.multinomial(chances, number, generator=random).sort().values
        return self.drawn[client]


class Omniscient(_Spattack):
    """Minus what honest clients send, shared out among the liars that send a row.

    Args:
        crew: of the liars.
    """

    own_length: ClassVar[bool] = True

    def begin(self, received: Params) -> None:
        """See `TableAttack`."""
        super().begin(received)
        assert self.table is not None
        self.change, self.shares = torch.zeros_like(self.table), self.table.new_zeros(len(self.table))

    def overhear(self, honest: Upload, weights: Tensor) -> None:
        """Add their changes up, each as often as it counts."""
        super().overhear(honest, weights)
        ((_, rows),) = honest.rows.items()
        weighted = rows.double() * weights.double()[:, None, None]
        self.change.index_add_(0, honest.items[honest.touched].cpu(), weighted[honest.touched].cpu())

    def gather(self, liars: Upload, weights: Tensor) -> None:
        """[m] how much all liars that send a row count."""
        for client, weight in zip(liars.clients.tolist(), weights.tolist(), strict=True):
            self.shares[self.items_of(client)] += weight

    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor]:
        """The same of every liar that sends a row; finite also where these liars count for nothing."""
        items = self.items_of(int(upload.clients[0]))
        return items, -self.change[items] / self.shares[items, None].clamp(min=1e-12)


class Limited(_Spattack):
    """The same noise of everybody, in every round.

    Args:
        crew: of the liars.
    """

    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the one table of noise."""
        noise = torch.randn(table.shape, generator=generator(self.crew.seed, "the same noise")).double()
        items = self.items_of(int(upload.clients[0]))
        return items, noise[items]
