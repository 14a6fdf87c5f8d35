"""Markov: what others took right after a user's last item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked
from ownview.baselines.parts.counting import Cells, Counting, cells_of, whole
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.parts.sequences.sequence import require_order
from ownview.seam.portable import Linear, Portable, SparseRows, Term
from ownview.seam.training import Params


@dataclass(frozen=True)
class Markov(Counting):
    """score of item i = how often i came right after the user's last item, over all training histories.

    Items that never did stand behind, by popularity: a row counts 1 / (1 + rows of all items), less than a transition.
    A sum over users of their own steps.
    """

    name: ClassVar[str] = "markov"
    title: ClassVar[str] = "The last item's successors"
    summary: ClassVar[str] = "how often an item came right after the last one"

    def require(self, split: Split) -> None:
        """The order of a user's items."""
        require_order(self.name, split.order)

    def shapes(self, num_items: int) -> dict[str, tuple[int, ...]]:
        """Steps from items to items, and rows of items."""
        return {"steps": (num_items, num_items), "rows": (num_items,)}

    def counted(self, line: Timeline, num_items: int) -> dict[str, Cells]:
        """Count steps from an item to the next, and items."""
        items = line.items
        every, offsets = items.values.numpy(), items.offsets.numpy()
        follows = np.ones(len(every), dtype=bool)
        follows[offsets[:-1][items.lengths.numpy() > 0]] = False
        later = np.flatnonzero(follows)
        step, count = np.unique(every[later - 1] * num_items + every[later], return_counts=True)
        rows = cells_of(np.bincount(every, minlength=num_items))
        return {"steps": Cells(step, count.astype(np.float64)), "rows": rows}

    def learned_from(self, sums: Mapping[str, Cells], num_items: int) -> Params:
        """Steps as compressed rows, and popularity."""
        m, (step, count), rows = num_items, sums["steps"], whole(sums["rows"], num_items)
        return {
            "offsets": torch.from_numpy(np.searchsorted(step // m, np.arange(m + 1))),
            "items": torch.from_numpy(step % m),
            "counts": torch.from_numpy(count.astype(np.float32)),
            "popularity": torch.from_numpy(rows).to(torch.float32) / (1 + int(rows.sum())),
        }

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] the row of each user's last item; popularity alone for a user with no history."""
        known = asked.known.items
        lengths = known.lengths_of(asked.users)
        last = known.values[(known.offsets[asked.users + 1] - 1).clamp(min=0)]
        successors = Ragged(learned["offsets"], learned["items"])
        listed, real = successors.padded(last)
        counts = Ragged(learned["offsets"], learned["counts"]).padded(last)[0] * (real & (lengths > 0)[:, None])
        return learned["popularity"].expand(len(last), -1).scatter_add(1, listed, counts)

    def portable(self, learned: Params) -> Portable:
        """The last item's row, and popularity behind it."""
        steps = SparseRows(learned["offsets"], learned["items"], learned["counts"])
        return Linear((Term(steps, most=1),), learned["popularity"])
