"""RP3beta: a walk from item to user to item, popular items played down; irspack's.

Paudel, Christoffel, Newell and Bernstein, "Updatable, Accurate, Diverse, and Scalable Recommendations for Interactive
Applications", ACM TiiS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ownview.baselines.parts.similarity import ItemSimilarity
from ownview.config.search import Between
from ownview.config.settings import setting


@dataclass(frozen=True)
class RP3Beta(ItemSimilarity):
    """W[j, i] = sum over users u of p(u | j) p(i | u) / popularity(i)^beta, the k greatest of every column i."""

    name: ClassVar[str] = "rp3beta"
    title: ClassVar[str] = "RP3beta"
    summary: ClassVar[str] = "random walk over users to other items, popular ones played down"
    paper: ClassVar[str] = "Paudel et al., TiiS 2017"

    neighbours: int = setting(
        100, "k, how many items speak for an item, itself among them", low=1, search=Between(10, 500, log=True)
    )
    beta: float = setting(0.6, "how much popularity is played down", low=0, search=Between(0.0, 1.0))

    def recommender(self, irspack: Any, matrix: Any) -> Any:
        """Irspack's RP3betaRecommender; its alpha has no effect where all values are 1."""
        return irspack.RP3betaRecommender(matrix, beta=self.beta, top_k=self.neighbours, n_threads=1)
