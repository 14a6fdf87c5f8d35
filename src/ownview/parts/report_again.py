"""Whether one client's summands are those that some history makes: the server reads it, reports again and compares.

A report that follows from a history and from what everybody received can be made again by a server that sees it in
clear and finds out which items it is of. What is left to a liar is which history it claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.seam.client import Nearby, Patch, Product, Report
from ownview.seam.honest_summands import Cells
from ownview.seam.training import Batch, Context, Params

_ROUNDING = 1e-3
"""Share of a summand's largest number by which it may differ: what a client solves in float32, with room."""


@dataclass(frozen=True)
class ReportAgain:
    """Of a method whose clients report from `seen` [m] and what they received, and from nothing else.

    Args:
        report: as the method's clients make it.
        read: summands by name, and what clients made of their download -> [k] the items they are of, if of any history.
    """

    report: Report
    read: Callable[[Mapping[str, Cells], Params], Tensor]

    def __call__(self, cells: Mapping[str, Cells], opened: Params) -> str:
        """What no history can have made; empty where one can."""
        items = opened["items"]
        seen = items.new_zeros(len(items))
        seen[self.read(cells, opened)] = 1
        nothing = Batch(*[torch.zeros(0)] * len(Batch._fields))
        summands, _ = self.report({**opened, "seen": seen}, nothing, Context(1))
        for name, one in summands.items():
            if isinstance(one, Patch | Nearby):
                raise TypeError(f"{name}: a patch is not compared")
            whole = one.left.mT @ one.right if isinstance(one, Product) else one[:, None]
            rows, columns, found = cells[name]
            expected = whole.double().clone()
            most = _ROUNDING * float(expected.abs().max())
            expected[rows[:, None], columns] -= found.double()
            if not float(expected.abs().max()) <= most:
                return f"{name}: numbers that no history has"
        return ""
