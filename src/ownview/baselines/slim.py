"""SLIM: every item's column explained by few others; irspack's.

Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ownview.baselines.parts.similarity import ItemSimilarity
from ownview.config.search import Between
from ownview.config.settings import setting


@dataclass(frozen=True)
class SLIM(ItemSimilarity):
    """W minimises |X - X W|^2 / 2 + strength n ((1 - l1) |W|^2 / 2 + l1 sum |W|), W >= 0, the diagonal 0.

    By coordinate descent in single precision, a column at a time, until no value moves by more than `tolerance`.
    """

    name: ClassVar[str] = "slim"
    title: ClassVar[str] = "SLIM"
    summary: ClassVar[str] = "every item explained by few others, by an elastic net"
    paper: ClassVar[str] = "Ning and Karypis, ICDM 2011"

    strength: float = setting(0.05, "of both penalties, per user", above=0, search=Between(1e-3, 1.0, log=True))
    l1_share: float = setting(
        0.01, "of the penalty on |W|, the rest being on W squared", low=0, high=1, search=Between(1e-4, 1.0, log=True)
    )
    positive: bool = setting(True, "whether W may not be negative")
    iterations: int = setting(100, "passes over an item's column at most", low=1)
    tolerance: float = setting(1e-4, "a column is done when no value moves by more", above=0)

    def recommender(self, irspack: Any, matrix: Any) -> Any:
        """Irspack's SLIMRecommender. On two threads its result is another than on one."""
        return irspack.SLIMRecommender(
            matrix,
            alpha=self.strength,
            l1_ratio=self.l1_share,
            positive_only=self.positive,
            n_iter=self.iterations,
            tol=self.tolerance,
            n_threads=1,
        )
