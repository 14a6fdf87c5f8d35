"""Federated iALS: alternating least squares by exchanging the sums that its normal equations are made of.

Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008; objective and
regularisation of Rendle et al., "Revisiting the Performance of iALS on Item Recommendation Benchmarks", 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.least_squares import outer_products
from ownview.parts.report_again import ReportAgain
from ownview.seam.client import Product, Reporting, Summand, Summands
from ownview.seam.initial import Normal
from ownview.seam.memory import Memory
from ownview.seam.method import ReportingMethod
from ownview.seam.portable import Factors, Portable, Ridge
from ownview.seam.roles import Param, held, history, received
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class FedIALS(ReportingMethod):
    """score = u . v_i; all u and all v_i by turns minimise the sum below.

    sum_(pairs seen) (u . v_i - 1)^2 + a sum_(all pairs) (u . v_i)^2
      + l sum_u (|items of u| + a |items|)^nu |u|^2 + l sum_i (|users of i| + a |users|)^nu |v_i|^2

    u is solved at home from V and never kept: it follows from the history. The client's part of every item's
    normal equations is u u^T and u for its own items, and u u^T once for all items.
    """

    name: ClassVar[str] = "fedials"
    title: ClassVar[str] = "FedIALS"
    summary: ClassVar[str] = "iALS by summed normal equations: exact alternating least squares"
    paper: ClassVar[str] = "Hu et al., ICDM 2008; Rendle et al. 2021 (the model); sums over clients here"

    embedding_size: int = setting(32, "length of user and item vectors", low=1, search=OneOf((16, 32, 64, 128)))
    unobserved: float = setting(
        1.0, "a, the weight of every pair, seen or not", above=0, search=Between(0.03, 3.0, log=True)
    )
    regularization: float = setting(
        0.003, "l, the weight of the vectors' squares", above=0, search=Between(1e-4, 0.1, log=True)
    )
    exponent: float = setting(1.0, "nu, how regularisation grows with activity", low=0, high=1)
    initial_scale: float = setting(0.1, "initial deviation of an item vector's length", above=0)

    def params(self, world: World) -> dict[str, Param]:
        """V goes to everybody; how often each item has been reported so far stays on the server."""
        d = self.embedding_size
        start = Normal(self.initial_scale / math.sqrt(d))
        items = received(world.num_items, d, initial=start)
        return {"seen": history(), "items": items, "known": held(world.num_items)}

    def sends(self, world: World) -> dict[str, Summand]:
        """Left sides, right sides and user counts of the items' equations, and the part that all items share."""
        m, d = world.num_items, self.embedding_size
        return {
            "equations": Summand((m, d * (d + 1) // 2), "u u^T for each of its items, its upper half"),
            "targets": Summand((m, d), "u for each of its items"),
            "users": Summand((m,), "which items it has"),
            "common": Summand((d, d), "u u^T", symmetric=True),
        }

    def reporting(self, world: World) -> Reporting:
        """Products of the received item vectors are made once for all clients."""
        again = ReportAgain(self.report, lambda cells, opened: cells["users"].rows)
        return replace(super().reporting(world), prepare_download=outer_products, together=again)

    def memory(self, world: World) -> Memory:
        """The history in float64 and a few d x d matrices at a client; an equation an item in float64 at the server."""
        m, d = world.num_items, self.embedding_size
        return Memory(8 * m + 12 * d**2, server=2 * m * d**2)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """Solve u, and send its part of the items' equations."""
        seen, user = p["seen"][None], self._user(p)[None]
        rows, columns = _upper_half(self.embedding_size, user.device)
        return {
            "equations": Product(seen, user[:, rows] * user[:, columns]),
            "targets": Product(seen, user),
            "users": p["seen"],
            "common": Product(user, user),
        }, {}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """Solve every item; one without users in this round keeps its vector, or 0 if it never had users."""
        d, users = self.embedding_size, sums["users"].double()
        ridge = self._ridge(users, arrived.clients)[:, None, None] * torch.eye(d, device=users.device)
        equations = users.new_zeros(len(users), d, d)
        rows, columns = _upper_half(d, users.device)
        equations[:, rows, columns] = equations[:, columns, rows] = sums["equations"].double()
        left = equations + self.unobserved * sums["common"].double() + ridge
        solved = torch.linalg.solve(left, sums["targets"].double())
        known = values["known"] + sums["users"]
        left_alone = torch.where(known[:, None] > 0, values["items"].double(), 0.0)
        return {"items": torch.where(users[:, None] > 0, solved, left_alone), "known": known}

    def scores(self, p: Params) -> Tensor:
        """[m] u . v_i, u solved anew from the newest V."""
        return p["items"] @ self._user(p)

    def _user(self, p: Params) -> Tensor:
        """[d] (V^T diag(seen) V + a V^T V + ridge)^-1 V^T seen."""
        items, seen = p["items"].double(), p["seen"].double()
        d = items.shape[1]
        ridge = self._ridge(seen.sum(), len(items)) * torch.eye(d, dtype=items.dtype, device=items.device)
        left = (seen @ p["squares"]).reshape(d, d) + self.unobserved * p["gram"] + ridge
        user: Tensor = torch.linalg.solve(left, seen @ items)
        return user.to(p["seen"].dtype)

    def _ridge(self, observed: Tensor, everything: int) -> Tensor:
        """The weight l (observed + a everything)^nu."""
        return self.regularization * (observed + self.unobserved * everything) ** self.exponent

    def portable(self, received: Params, world: World) -> Portable:
        """Exactly what a client scores by."""
        a, m = self.unobserved, world.num_items
        solved = Ridge(seen=1.0, every=a, target=1.0, ridge=self.regularization, count=a * m, exponent=self.exponent)
        return Factors(received["items"], solved)


def _upper_half(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and columns of the entries on and above the diagonal of a square matrix."""
    rows, columns = torch.triu_indices(size, size, device=device)
    return rows, columns
