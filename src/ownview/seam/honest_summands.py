"""What an honest client's summand can be: declared beside the summand, and checked by every server that sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ownview.seam.training import Params

Structure = Callable[[Tensor], str]
"""[k, l] the numbers of one client's summand where its rows and columns that are not 0 cross -> what of it no history
can have made, in words; empty where one can."""


class Cells(NamedTuple):
    """One client's summand as a matrix, without its rows and columns of zeros.

    rows:    [k] ascending
    columns: [l] ascending
    values:  [k, l]
    """

    rows: Tensor
    columns: Tensor
    values: Tensor


Together = Callable[[Mapping[str, Cells], Params], str]
"""All summands of one client, by name, and what clients made of their download -> what no history can have made of them
together; empty where one can."""


@dataclass(frozen=True)
class Honest:
    """Bounds of one client's summand, before any noise.

    Args:
        low: of every number.
        high: likewise.
        rows: that are not 0, at most; None for any number of them.
        structure: that the numbers must have together.
    """

    low: float = -math.inf
    high: float = math.inf
    rows: int | None = None
    structure: Structure | None = None
