"""Whether a matrix is what some history of different items makes: exp(-|a - b| / tau) for items at places a and b.

Bounds on numbers and norms leave an attacker far more than histories do: a column of ones towards an item is within any
such bound, and no history has it. So the server looks for the history: one end of it is the item whose row adds up to
the least, the next one is always the nearest of those that are left, and the kernel of the places found must be the
matrix, to rounding. Then a client has no more to choose than which items it claims to have had, and in what order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_ROUNDING = 1e-5
"""By which numbers in [0, 1] may differ: float32 and another machine's exp, with room."""


@dataclass(frozen=True)
class HistoryKernel:
    """Check whether a history can have made a matrix of FedEASE's pairs.

    Args:
        tau: places after which a pair counts 1/e; infinite where all pairs count 1.
    """

    tau: float

    def __call__(self, cells: Tensor) -> str:
        """What is wrong with [k, k]; empty where it is the kernel of a history, or what is new in that of a longer one.

        Of a history that grew, items that were sent before have no pair with each other, nor with themselves.
        """
        matrix = cells.double()
        if matrix.shape[0] != matrix.shape[1]:
            return f"{matrix.shape[0]} rows and {matrix.shape[1]} columns; a history's pairs are as many either way"
        old = matrix.diagonal() == 0
        if bool(old.all()):
            return "" if not len(matrix) else "pairs of items that are none with themselves; no history has them"
        expected = self.of(_grown(matrix, old)) * ~(old[:, None] & old)
        apart = float((matrix - expected).abs().max())
        return "" if apart <= _ROUNDING else f"pairs that no history has: {apart:.2g} from the nearest that was found"

    def of(self, order: Tensor) -> Tensor:
        """[k, k] the kernel of items of which the one at order[a] stands at place a."""
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        if math.isinf(self.tau):
            return torch.ones(len(order), len(order), dtype=torch.float64)
        return torch.exp(-(place[:, None] - place).abs().double() / self.tau)


def _grown(matrix: Tensor, old: Tensor) -> Tensor:
    """[k] items from one end of a history to the other, those that were sent before in front of all new ones."""
    before, new = old.nonzero()[:, 0], (~old).nonzero()[:, 0]
    order = new[_order(matrix[new][:, new])]
    if not len(before):
        return order
    ends = matrix[before][:, order[[0, -1]]]
    if float(ends[:, 1].sum()) > float(ends[:, 0].sum()):  # the new item next to the old ones comes first
        order, ends = order.flip(0), ends.flip(1)
    return torch.cat([before[ends[:, 0].argsort(stable=True)], order])


def _order(matrix: Tensor) -> Tensor:
    """[k] items from one end of a history to the other, if the matrix is a history's; else any order."""
    numbers, left = matrix.numpy(), matrix.sum(1).numpy().copy()
    order, near = [], -left  # the first is the one whose row adds up to the least
    free = torch.zeros(len(matrix)).numpy()
    for _ in range(len(matrix)):
        one = int((near + free).argmax())
        order.append(one)
        free[one] = -math.inf
        near = numbers[one]
    return torch.tensor(order, dtype=torch.long)
