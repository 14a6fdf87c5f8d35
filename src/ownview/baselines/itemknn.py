"""ItemKNN: items that the same users have, by the cosine of their columns; irspack's.

Sarwar, Karypis, Konstan and Riedl, "Item-based Collaborative Filtering Recommendation Algorithms", WWW 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ownview.baselines.parts.similarity import ItemSimilarity
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting

WEIGHTINGS = ("none", "tf-idf", "bm25")


@dataclass(frozen=True)
class ItemKNN(ItemSimilarity):
    """W[j, i] = x_j . x_i / (|x_j| |x_i| + shrinkage) for the k items i nearest to j, j itself left out."""

    name: ClassVar[str] = "itemknn"
    title: ClassVar[str] = "ItemKNN"
    summary: ClassVar[str] = "cosine between items by the users they share"
    paper: ClassVar[str] = "Sarwar et al., WWW 2001"

    neighbours: int = setting(100, "k, how many others an item speaks for", low=1, search=Between(10, 500, log=True))
    shrinkage: float = setting(10.0, "takes weight from items that few users share", low=0, search=Between(0.0, 100.0))
    weighting: str = setting(
        "none", "of a user's items, before the cosine", choices=WEIGHTINGS, search=OneOf(WEIGHTINGS)
    )

    def recommender(self, irspack: Any, matrix: Any) -> Any:
        """Irspack's CosineKNNRecommender."""
        return irspack.CosineKNNRecommender(
            matrix,
            shrinkage=self.shrinkage,
            normalize=True,
            top_k=self.neighbours + 1,  # the package counts the item itself, and then leaves it out
            feature_weighting={"none": "NONE", "tf-idf": "TF_IDF", "bm25": "BM_25"}[self.weighting],
            n_threads=1,
        )
