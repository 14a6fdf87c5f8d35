"""EASE^R: every item's column explained by all others, in closed form.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.parts.packages import training_matrix
from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.parts.pairs.counted import pair_counts
from ownview.parts.pairs.positive_definite import MOST_IN_DOUBLE, ease_weights
from ownview.seam.portable import Linear, Portable, Term
from ownview.seam.training import Params


@dataclass(frozen=True)
class EASE(OneShot):
    """W minimises |X - X W|^2 + lambda |W|^2 with diagonal 0: W[j, i] = -P[j, i] / P[i, i], P = (X'X + lambda)^-1.

    score(u, i) = sum of W[j, i] over the items j that user u is known to have. No negatives are drawn, so a protocol's
    exclusions do not matter, nor does the seed.
    """

    name: ClassVar[str] = "ease"
    title: ClassVar[str] = "EASE^R"
    summary: ClassVar[str] = "every item explained by all others, in closed form"
    paper: ClassVar[str] = "Steck, WWW 2019"
    by_history: ClassVar[bool] = True

    strength: float = setting(200.0, "lambda, the weight of |W|^2", above=0, search=Between(10.0, 3000.0, log=True))

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """The Gram matrix and the weights in single precision, and what they are solved in."""
        return 8 * num_items**2 + 8 * min(num_items, MOST_IN_DOUBLE) ** 2

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Counts are exact in single precision; what they are solved in, `ease_weights` says."""
        gram = torch.from_numpy(pair_counts(training_matrix(split).astype(np.float32)))
        return {"weights": ease_weights(gram, self.strength, in_place=True)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] X W."""
        return asked.summed_rows(learned["weights"])

    def portable(self, learned: Params) -> Portable:
        """Exactly what it scores by."""
        return Linear((Term(learned["weights"], regularization=self.strength),))
