"""What attacks on one table of items have in common: what liars receive, what they overhear, and what they send.

Ours differ from the papers in what clients send: not one gradient for a rate of the server's, but a round's change of
some rows. Where a paper says nothing of its length, it is brought to one or ten times that of the median honest one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import PROMOTE, Crew
from ownview.base.errors import SettingError
from ownview.messages.upload import Upload
from ownview.seam.training import Params


class TableAttack(ABC):
    """One such attack, over all rounds.

    Args:
        crew: of the liars, whose means it is.
    """

    goal: ClassVar[str] = PROMOTE
    own_length: ClassVar[bool] = False
    """Whether the paper says how long its lies are."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.before: Tensor | None = None
        """[m, d] that the server had sent a round ago."""
        self.table: Tensor | None = None
        """[m, d] that the server has sent last."""

    def begin(self, received: Params) -> None:
        """A round begins with what the server has sent, by name."""
        tables = [one for one in received.values() if one.dim() == 2 and len(one) == self.crew.split.num_items]
        self._require(one_table=len(received) == len(tables) == 1)
        self.before, self.table = self.table, tables[0].detach().double().cpu()

    def overhear(self, honest: Upload, weights: Tensor) -> None:
        """Honest uploads, and [B] how much each counts; for attacks that know them."""
        self._require(one_table=_of_one_table(honest))

    def gather(self, liars: Upload, weights: Tensor) -> None:
        """Honest work of liars of the round, and [B] how much each counts; for attacks that agree on shares."""
        self._require(one_table=_of_one_table(liars))

    def lie(self, upload: Upload) -> Upload:
        """What one liar sends in the place of its honest work; that work where the attack has not begun yet."""
        self._require(one_table=_of_one_table(upload))
        found = None if self.table is None else self.rows_of(upload, self.table)
        if found is None:
            return upload
        items, rows = found
        ((name, like),) = upload.rows.items()
        return replace(
            upload,
            items=items[None].to(upload.items.device),
            touched=torch.ones_like(items[None], dtype=torch.bool, device=upload.items.device),
            rows={name: rows[None].to(like)},
        )

    @abstractmethod
    def rows_of(self, upload: Upload, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """[k] items and [k, d] changes of their rows; None for honest work.

        Args:
            upload: a liar's honest work, a stack of one.
            table: [m, d] that the server has sent.
        """

    def _require(self, *, one_table: bool) -> None:
        if self.crew.goal != self.goal or not one_table:
            what = "promotes items" if self.goal == PROMOTE else f"{self.goal}s the lists"
            raise SettingError(f"{self.crew.means}: {what} of methods that send one table of items, as fedmf does")


def _of_one_table(upload: Upload) -> bool:
    return len(upload.rows) == 1 and not upload.sums and not upload.whole
