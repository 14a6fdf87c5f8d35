"""Which groups of contributions are like the others: a share cannot be looked into, but a sum of a few hundred can.

A contribution's group is drawn by a key that tabs do not have; how groups are compared stands in
`privacy.masking.groups`. It stops large numbers of few tabs; numbers as small as honest ones are not seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ownview.privacy.masking import groups


def alike(sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """[g] which of the groups' sums [g, n], of so many contributions each, are kept; all where there is one."""
    return groups.alike(groups.distances([sums / counts[:, None]]))
