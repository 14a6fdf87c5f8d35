"""A count sketch of summed pairs: fewer numbers a client than pairs of items, all of them noisy.

Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", ICALP 2002. A sketch is linear: the sum of
clients' sketches is the sketch of their sum, so that it can be masked, shared and noised as any sum. Measured by
`benchmarks.sums_by_size`; what it showed is why no method has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.config.settings import setting
from ownview.methods.fedease import FedEASE
from ownview.parts.pairs.positive_definite import ease_weights, symmetrised
from ownview.seam.server import Arrived
from ownview.seam.training import Params

Hashes = npt.NDArray[np.uint64]

_ROWS = 256
"""Of a matrix that are hashed at once."""


def mixed(keys: Hashes) -> Hashes:
    """SplitMix64's finaliser: 64 bits that look independent for neighbouring keys."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


@dataclass(frozen=True)
class PairSketch:
    """t[h(i, j)] += s(i, j) G[i, j] for all pairs i < j; s is -1 or 1. The diagonal stays as it is.

    G[i, j] is estimated by s(i, j) t[h(i, j)]: without bias over hashes, with variance (sum of all other squares) / w.

    Args:
        width: w, numbers of the sketch.
        seed: of both hashes, the same for everybody.
    """

    width: int
    seed: int = 0

    def of(self, matrix: Tensor) -> Tensor:
        """[w] the sketch of a symmetric matrix [m, m], in float64."""
        table = np.zeros(self.width)
        for start, cells, signs in self._bands(len(matrix)):
            band = matrix[start : start + len(cells)].double().numpy() * signs
            table += np.bincount(cells.ravel(), weights=band.ravel(), minlength=self.width)
        return torch.from_numpy(table)

    def estimate(self, table: Tensor, diagonal: Tensor) -> Tensor:
        """[m, m] of a sketch [w] and the diagonal [m], in the diagonal's precision."""
        found, known = torch.zeros(len(diagonal), len(diagonal), dtype=diagonal.dtype), table.numpy()
        for start, cells, signs in self._bands(len(diagonal)):
            found[start : start + len(cells)] = torch.from_numpy(known[cells] * signs).to(diagonal.dtype)
        found.add_(found.T.clone())
        found.diagonal().copy_(diagonal)
        return found

    def _bands(self, size: int) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """First row, cells [b, m] and signs [b, m] of some rows; signs are 0 on and below the diagonal."""
        columns = np.arange(size, dtype=np.uint64)
        for start in range(0, size, _ROWS):
            rows = np.arange(start, min(start + _ROWS, size), dtype=np.uint64)[:, None]
            with np.errstate(over="ignore"):  # hashes wrap around
                salt = mixed(np.full((1, 1), self.seed + 1, dtype=np.uint64))
                hashed = mixed(rows * np.uint64(size) + columns + salt)
            signs = (hashed >> np.uint64(63)).astype(np.float64) * 2 - 1
            signs[rows >= columns] = 0
            yield start, (hashed % np.uint64(self.width)).astype(np.int64), signs


@dataclass(frozen=True)
class SketchedEASE(FedEASE):
    """FedEASE by a server that has the sketch of its sum alone.

    Clients send what FedEASE's do, because a sum of sketches is the sketch of the sum, to rounding.
    """

    name: ClassVar[str] = "sketched-ease"
    title: ClassVar[str] = "FedEASE of a sketch"
    summary: ClassVar[str] = "EASE^R from a count sketch of summed pairs"

    width: int = setting(1 << 20, "numbers of the sketch", low=1)

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """B of what the sketch says of G."""
        gram, sketch = symmetrised(sums["pairs"]), PairSketch(self.width)
        seen = sketch.estimate(sketch.of(gram), gram.diagonal())
        return {"gram": seen, "weights": ease_weights(seen, self.regularization)}
