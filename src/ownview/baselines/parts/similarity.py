"""Models that score an item by its likeness to the user's items: scores = X W, for any W."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.parts.packages import one_thread, package, training_matrix
from ownview.baselines.parts.sparse import compressed_rows
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.portable import Linear, Portable, SparseRows, Term
from ownview.seam.training import Params


@dataclass(frozen=True)
class ItemSimilarity(OneShot):
    """score(u, i) = sum of W[j, i] over the items j that user u is known to have.

    W comes from a recommender of irspack. None of these draws negatives, so a protocol's exclusions do not matter, nor
    does the seed.
    """

    uses: ClassVar[str] = "irspack"
    by_history: ClassVar[bool] = True

    @abstractmethod
    def recommender(self, irspack: Any, matrix: Any) -> Any:
        """The package's recommender, not yet fitted, for the training matrix [n, m]."""

    def require_packages(self) -> None:
        """The package must be there."""
        package(self.uses, self.name)

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """W as the package makes it: dense, or transposed as compressed rows."""
        made = self.recommender(package(self.uses, self.name), training_matrix(split))
        with one_thread():
            weights = made.learn().W
        if isinstance(weights, np.ndarray):
            return {"weights": torch.from_numpy(np.ascontiguousarray(weights))}
        columns = weights.T.tocsr()
        columns.sort_indices()
        return {
            "weights.offsets": torch.from_numpy(columns.indptr.astype(np.int64)),
            "weights.rows": torch.from_numpy(columns.indices.astype(np.int64)),
            "weights.values": torch.from_numpy(columns.data),
        }

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] X W."""
        if "weights" in learned:
            return asked.summed_rows(learned["weights"])
        offsets, rows, values = (learned[f"weights.{part}"] for part in ("offsets", "rows", "values"))
        m = len(offsets) - 1
        return (compressed_rows(offsets, rows, values, (m, m)) @ asked.history(m, values).T).T

    def portable(self, learned: Params) -> Portable:
        """Exactly what it scores by: W as compressed rows where it is stored transposed."""
        if "weights" in learned:
            return Linear((Term(learned["weights"]),))
        values, rows, offsets = (learned[f"weights.{part}"].numpy() for part in ("values", "rows", "offsets"))
        from scipy.sparse import csc_matrix  # noqa: PLC0415 - slow to import

        weights = csc_matrix((values, rows, offsets), shape=(len(offsets) - 1,) * 2).tocsr()
        parts = (weights.indptr.astype(np.int64), weights.indices.astype(np.int64), weights.data)
        return Linear((Term(SparseRows(*map(torch.from_numpy, parts))),))
