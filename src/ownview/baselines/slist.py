"""SLIST: linear models from past to future and from item to item, in closed form.

Choi, Kim, Lee, Shim and Lee, "Session-aware Linear Item-Item Models for Session-based Recommendation", WWW 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.parts.sequences.sequence import require_order
from ownview.seam.portable import Linear, Portable, Term
from ownview.seam.training import Params

_LEAST = 1e-3
"""Items of the past and of the future that would weigh less are left out."""


@dataclass(frozen=True)
class SLIST(OneShot):
    """B minimises a |X - X B|^2 + (1 - a) |T - S B|^2 + lambda |B|^2; score = z_u B.

    X [n, m] has 1 for every item of a user. S and T have a row for every place t of every history that another item
    follows: S the items up to t, weighed by exp(-steps back / decay), T those after it, by exp(-further steps / decay).
    z_u is the history weighed by exp(-steps back / recency).
    B = (a X'X + (1 - a) S'S + lambda I)^-1 (a X'X + (1 - a) S'T).
    """

    name: ClassVar[str] = "slist"
    title: ClassVar[str] = "SLIST"
    summary: ClassVar[str] = "linear from past to future and from item to item, in closed form"
    paper: ClassVar[str] = "Choi et al., WWW 2021"
    by_history: ClassVar[bool] = True

    strength: float = setting(400.0, "lambda, the weight of |B|^2", above=0, search=Between(1.0, 3000.0, log=True))
    whole: float = setting(0.5, "a, the weight of item to item; 1 - a that of past to future", low=0, high=1)
    decay: float = setting(4.0, "steps after which the past and the future weigh a third", above=0, high=20)
    recency: float = setting(
        8.0, "steps after which the history weighs a third when asked", above=0, search=Between(1.0, 100.0, log=True)
    )

    def require(self, split: Split) -> None:
        """Items must have an order."""
        require_order(self.name, split.order)

    def standing_bytes(self, num_users: int, num_items: int) -> int:
        """Both sides of the equations, the factors and the solution, in float64."""
        return 4 * 8 * num_items**2

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Solve for B."""
        m, line = split.num_items, split.timeline.items
        past, future = self._around(line, m)
        owner = np.repeat(np.arange(len(line)), line.lengths.numpy())
        taken = _matrix(np.ones(len(owner)), owner, line.values.numpy(), (len(line), m))
        taken.data[:] = 1.0  # an item that occurs twice is there once
        pairs = self.whole * _product(taken, taken)
        left = pairs + (1 - self.whole) * _product(past, past)
        left.diagonal().add_(self.strength)
        right = pairs + (1 - self.whole) * _product(past, future)
        return {"weights": torch.linalg.solve(left, right).to(torch.float32)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] z_u B."""
        weights = learned["weights"]
        items, real = asked.known.items.padded(asked.users)
        back = real.sum(1, keepdim=True) - 1 - torch.arange(items.shape[1], device=items.device)
        near = torch.where(real, torch.exp(-back.clamp(min=0) / self.recency), 0.0).to(weights.dtype)
        history = weights.new_zeros(len(items), len(weights)).scatter_add_(1, items, near)
        return history @ weights

    def portable(self, learned: Params) -> Portable:
        """Equal to its scores where no user has an item twice."""
        once = "an item that a history has several times counts once here, and every time in the model"
        return Linear((Term(learned["weights"], self.recency),), left_out=(once,))

    def _around(self, line: Ragged, num_items: int) -> tuple[Any, Any]:
        """S and T, sparse, a row for every item of every history; those of last items are 0."""
        values, total = line.values.numpy(), len(line.values)
        place = np.arange(total)
        ends = np.repeat(line.offsets[1:].numpy(), line.lengths.numpy())
        begins = np.repeat(line.offsets[:-1].numpy(), line.lengths.numpy())
        found: dict[int, list[tuple[Any, Any, Any]]] = {-1: [], 1: []}
        for lag in range(max(1, math.ceil(-math.log(_LEAST) * self.decay))):
            for way, there in ((-1, place - lag), (1, place + 1 + lag)):
                fits = (there >= begins) & (there < ends) & (place + 1 < ends)
                weight = np.full(int(fits.sum()), math.exp(-lag / self.decay))
                found[way].append((weight, place[fits], values[there[fits]]))
        joined = [[np.concatenate(column) for column in zip(*parts, strict=True)] for parts in found.values()]
        past, future = (_matrix(weights, rows, items, (total, num_items)) for weights, rows, items in joined)
        return past, future


def _matrix(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    from scipy import sparse  # noqa: PLC0415 - slow to import

    return sparse.csr_matrix((values, (rows, columns)), shape=shape)


def _product(left: Any, right: Any) -> Tensor:
    """[m, m] left^T right in float64."""
    return torch.from_numpy((left.T @ right).toarray())
