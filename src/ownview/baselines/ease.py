"""EASE^R: every item's column explained by all others, in closed form; irspack's.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ownview.baselines.similarity import ItemSimilarity
from ownview.config.search import Between
from ownview.config.settings import setting


@dataclass(frozen=True)
class EASE(ItemSimilarity):
    """W minimises |X - X W|^2 + lambda |W|^2 with diagonal 0: W[j, i] = -P[j, i] / P[i, i], P = (X'X + lambda)^-1."""

    name: ClassVar[str] = "ease"
    title: ClassVar[str] = "EASE^R"
    summary: ClassVar[str] = "every item explained by all others, in closed form"
    paper: ClassVar[str] = "Steck, WWW 2019"

    strength: float = setting(200.0, "lambda, the weight of |W|^2", above=0, search=Between(10.0, 3000.0, log=True))

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """The Gram matrix, its sparse form before it, and the inverse's working copy."""
        return 4 * 4 * num_items**2

    def recommender(self, irspack: Any, matrix: Any) -> Any:
        """Irspack's DenseSLIMRecommender, which works in single precision."""
        return irspack.DenseSLIMRecommender(matrix, reg=self.strength)
