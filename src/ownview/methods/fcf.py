"""FCF: federated collaborative filtering, the first of its kind.

Ammad-ud-din et al., "Federated Collaborative Filtering for Privacy-Preserving Personalized Recommendation System",
2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.least_squares import outer_products
from ownview.parts.report_again import ReportAgain
from ownview.parts.server_adam import adam_step
from ownview.seam.client import Product, Reporting, Summand, Summands
from ownview.seam.honest_summands import Cells
from ownview.seam.initial import Normal
from ownview.seam.memory import Memory
from ownview.seam.method import ReportingMethod
from ownview.seam.portable import Factors, Portable, Ridge
from ownview.seam.roles import Param, held, history, received
from ownview.seam.server import Arrived
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class FCF(ReportingMethod):
    """score = u . q_i; J = sum_(u, i) c_ui (p_ui - u . q_i)^2 + l (sum_u |u|^2 + sum_i |q_i|^2), c_ui = 1 + a p_ui.

    p_ui is 1 for items seen, else 0. The client solves u at home and sends f_ui = c_ui (p_ui - u . q_i) u for every
    item; the server moves q_i by Adam on the gradient -2 sum_u f_ui + 2 l q_i.
    """

    name: ClassVar[str] = "fcf"
    title: ClassVar[str] = "FCF"
    summary: ClassVar[str] = "user vector in closed form at home, summed gradients of the item table"
    paper: ClassVar[str] = "Ammad-ud-din et al. 2019"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    confidence: float = setting(2.0, "a, how much more an item seen weighs", low=0, search=Between(0.5, 50.0, log=True))
    regularization: float = setting(
        30.0, "l, the weight of the vectors' squares", above=0, search=Between(1.0, 300.0, log=True)
    )
    learning_rate: float = setting(0.1, "the rate of the server's Adam", above=0, search=Between(0.01, 1.0, log=True))
    first_decay: float = setting(0.9, "Adam's first decay", low=0, high=0.9999)
    second_decay: float = setting(0.99, "Adam's second decay", low=0, high=0.99999)
    initial_scale: float = setting(0.1, "standard deviation of the initial item table", above=0)

    def params(self, world: World) -> dict[str, Param]:
        """Q goes to everybody; Adam's two moments and step count stay on the server."""
        m, d = world.num_items, self.embedding_size
        return {
            "seen": history(),
            "items": received(m, d, initial=Normal(self.initial_scale)),
            "first": held(m, d),
            "second": held(m, d),
            "steps": held(),
        }

    def sends(self, world: World) -> dict[str, Summand]:
        """The gradient of the whole item table, m x d."""
        return {"gradient": Summand((world.num_items, self.embedding_size), "gradient of the item table")}

    def reporting(self, world: World) -> Reporting:
        """Products of the received item vectors are made once for all clients."""
        again = ReportAgain(self.report, self._seen)
        return replace(super().reporting(world), prepare_download=outer_products, together=again)

    def memory(self, world: World) -> Memory:
        """History and errors, partly in float64, and a few d x d matrices at a client; products of item vectors."""
        m, d = world.num_items, self.embedding_size
        return Memory(12 * m + 12 * d**2, server=2 * m * d**2)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """f_i = c_i (p_i - u . q_i) u: one error an item, times u."""
        user = self._user(p)
        errors = (1 + self.confidence * p["seen"]) * (p["seen"] - p["items"] @ user)
        return {"gradient": Product(errors[None], user[None])}, {}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """One step of Adam."""
        gradient = -2 * sums["gradient"] + 2 * self.regularization * values["items"]
        steps, before = values["steps"] + 1, (values["items"], values["first"], values["second"])
        items, first, second = adam_step(
            before, gradient, steps, self.learning_rate, self.first_decay, self.second_decay
        )
        return {"items": items, "first": first, "second": second, "steps": steps}

    def scores(self, p: Params) -> Tensor:
        """[m] u . q_i, u solved anew from the newest Q."""
        return p["items"] @ self._user(p)

    def _user(self, p: Params) -> Tensor:
        """[d] (Q^T C Q + l I)^-1 Q^T C p, in float64; C is 1 + a on the items seen and else 1."""
        items, seen = p["items"].double(), p["seen"].double()
        d = items.shape[1]
        ridge = self.regularization * torch.eye(d, dtype=items.dtype, device=items.device)
        left = p["gram"] + self.confidence * (seen @ p["squares"]).reshape(d, d) + ridge
        user: Tensor = torch.linalg.solve(left, (1 + self.confidence) * (seen @ items))
        return user.to(p["seen"].dtype)

    def _seen(self, cells: Mapping[str, Cells], opened: Params) -> Tensor:
        """[k] items of the history that a gradient e u^T is of, if any is.

        u solves Q^T e = l u. Of e v^T with |v| = 1 the length of u = t v follows from it: t^2 = v^T Q^T e / l. Errors
        are then (1 + a)(1 - u . q_i) of an item seen, else -u . q_i; the nearer one counts.
        """
        rows, columns, values = cells["gradient"]
        whole = opened["items"].new_zeros(opened["items"].shape, dtype=torch.float64)
        whole[rows[:, None], columns] = values.double()
        v = whole[whole.square().sum(1).argmax()]
        v = v / v.norm().clamp(min=1e-300)
        items, errors = opened["items"].double(), whole @ v
        length = ((items.T @ errors) @ v / self.regularization).clamp(min=1e-300).sqrt()
        close, errors = items @ (length * v), errors / length
        seen = (errors - (1 + self.confidence) * (1 - close)).abs() < (errors + close).abs()
        return torch.arange(len(items))[seen]

    def portable(self, received: Params, world: World) -> Portable:
        """Exactly what a client scores by."""
        a = self.confidence
        return Factors(received["items"], Ridge(seen=a, every=1.0, target=1 + a, ridge=self.regularization))
