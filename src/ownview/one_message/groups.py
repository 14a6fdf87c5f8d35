"""Which groups of contributions are like the others: a share cannot be looked into, but a sum of a few hundred can.

A contribution's group is drawn by a key that tabs do not have. Of every group the mean contribution is compared with
the median of all groups, number by number; a group whose distance is more than `FAR` times the median distance is left
out, with everybody in it. It stops large numbers of few tabs; numbers as small as honest ones are not seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FAR = 3.0


def alike(sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """[g] which of the groups' sums [g, n], of so many contributions each, are kept; all where there is one."""
    if len(sums) == 1:
        return np.ones(1, dtype=bool)
    means = sums / counts[:, None]
    distances = np.linalg.norm(means - np.median(means, axis=0), axis=1)
    kept: npt.NDArray[np.bool_] = distances <= FAR * np.median(distances)
    return kept
