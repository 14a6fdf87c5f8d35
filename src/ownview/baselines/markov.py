"""Markov: what others took right after a user's last item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.central import Asked, OneShot
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.parts.sequence import require_order
from ownview.seam.portable import Linear, Portable, SparseRows, Term
from ownview.seam.training import Params


@dataclass(frozen=True)
class Markov(OneShot):
    """score of item i = how often i came right after the user's last item, in anybody's training history.

    Items that never did stand behind, by popularity: a row counts 1 / (1 + rows of all items), less than a transition.
    A sum over users of their own steps.
    """

    name: ClassVar[str] = "markov"
    title: ClassVar[str] = "The last item's successors"
    summary: ClassVar[str] = "how often an item came right after the last one"
    paper: ClassVar[str] = "none: a control"
    by_history: ClassVar[bool] = True
    yardstick: ClassVar[bool] = True

    def require(self, split: Split) -> None:
        """The order of a user's items."""
        require_order(self.name, split.order)

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Count steps from an item to the next, as compressed rows, and items."""
        items = split.timeline.items
        every, offsets = items.values.numpy(), items.offsets.numpy()
        follows = np.ones(len(every), dtype=bool)
        follows[offsets[:-1][items.lengths.numpy() > 0]] = False
        later = np.flatnonzero(follows)
        m = split.num_items
        step, count = np.unique(every[later - 1] * m + every[later], return_counts=True)
        return {
            "offsets": torch.from_numpy(np.searchsorted(step // m, np.arange(m + 1))),
            "items": torch.from_numpy(step % m),
            "counts": torch.from_numpy(count.astype(np.float32)),
            "popularity": torch.bincount(items.values, minlength=m).to(torch.float32) / (1 + len(every)),
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
