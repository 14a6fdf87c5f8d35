"""Federated iALS: alternating least squares by exchanging the sums that its normal equations are made of.

Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008; objective and
regularisation of Rendle et al., "Revisiting the Performance of iALS on Item Recommendation Benchmarks", 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.gathering import Arrived, Gathering, History, Product, Summand, Summands, Value
from ownview.seam.initial import Normal
from ownview.seam.training import Context, Params, World


@dataclass(frozen=True)
class FedIALS(Gathering):
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

    def server(self, world: World) -> dict[str, Value]:
        """V, and how often each item has been reported so far, which stays."""
        d = self.embedding_size
        start = Normal(self.initial_scale / math.sqrt(d))
        return {
            "items": Value((world.num_items, d), start),
            "known": Value((world.num_items,), down=False),
        }

    def summands(self, world: World) -> dict[str, Summand]:
        """Left sides, right sides and user counts of the items' equations, and the part all items share."""
        m, d = world.num_items, self.embedding_size
        return {
            "equations": Summand((m, d * d), "u u^T for each of its items"),
            "targets": Summand((m, d), "u for each of its items"),
            "users": Summand((m,), "which items it has"),
            "common": Summand((d, d), "u u^T"),
        }

    def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
        """Solve u, and send its part of the items' equations."""
        seen, user = history.seen[None], self._user(history, server)[None]
        square = (user.T * user).reshape(1, -1)
        return {
            "equations": Product(seen, square),
            "targets": Product(seen, user),
            "users": history.seen,
            "common": Product(user, user),
        }, {}

    def numbers_sent(self, history: History, own: Params) -> Params:
        """Of k items: k halves of a symmetric matrix, k vectors, k places, and one half more."""
        k, d = history.seen.sum(), self.embedding_size
        half = d * (d + 1) / 2
        return {"equations": k * half, "targets": k * d, "users": k, "common": torch.full_like(k, half)}

    def combine(self, sums: Params, server: Params, arrived: Arrived) -> Params:
        """Solve every item; one that nobody of this round has stays as it is, or is 0 where nobody ever had it."""
        d, users = self.embedding_size, sums["users"].double()
        ridge = self._ridge(users, arrived.clients)[:, None, None] * torch.eye(d, device=users.device)
        left = sums["equations"].double().reshape(-1, d, d) + self.unobserved * sums["common"].double() + ridge
        solved = torch.linalg.solve(left, sums["targets"].double())
        known = server["known"] + sums["users"]
        kept = torch.where(known[:, None] > 0, server["items"].double(), 0.0)
        return {"items": torch.where(users[:, None] > 0, solved, kept), "known": known}

    def digest(self, server: Params) -> Params:
        """V v^T of every item, m x d^2, and V^T V, in float64; a device needs the former of its own items only."""
        items = server["items"].double()
        squares = (items[:, :, None] * items[:, None, :]).flatten(1)
        return {"items": server["items"], "squares": squares, "common": items.T @ items}

    def scores(self, history: History, own: Params, server: Params) -> Tensor:
        """[m] u . v_i, u solved anew from the newest V."""
        return server["items"] @ self._user(history, server)

    def _user(self, history: History, server: Params) -> Tensor:
        """[d] (V^T diag(seen) V + a V^T V + ridge)^-1 V^T seen."""
        items, seen = server["items"].double(), history.seen.double()
        d = items.shape[1]
        ridge = self._ridge(seen.sum(), len(items)) * torch.eye(d, dtype=items.dtype, device=items.device)
        left = (seen @ server["squares"]).reshape(d, d) + self.unobserved * server["common"] + ridge
        user: Tensor = torch.linalg.solve(left, seen @ items)
        return user.to(history.seen.dtype)

    def _ridge(self, observed: Tensor, everything: int) -> Tensor:
        """L (observed + a everything)^nu."""
        return self.regularization * (observed + self.unobserved * everything) ** self.exponent

    def server_working(self, world: World) -> int:
        """In float64."""
        return 2 * world.num_items * self.embedding_size**2

    def working(self, world: World) -> int:
        """The history in float64, and a few d x d matrices."""
        return 8 * world.num_items + 12 * self.embedding_size**2
