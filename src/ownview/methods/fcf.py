"""FCF: federated collaborative filtering, the first of its kind.

Ammad-ud-din et al., "Federated Collaborative Filtering for Privacy-Preserving Personalized Recommendation System",
2019.
"""

from __future__ import annotations

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
class FCF(Gathering):
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

    def server(self, world: World) -> dict[str, Value]:
        """Q, and Adam's two moments and step count, which stay."""
        shape = (world.num_items, self.embedding_size)
        return {
            "items": Value(shape, Normal(self.initial_scale)),
            "first": Value(shape, down=False),
            "second": Value(shape, down=False),
            "steps": Value((), down=False),
        }

    def summands(self, world: World) -> dict[str, Summand]:
        """The gradient of the whole item table, m x d."""
        return {"gradient": Summand((world.num_items, self.embedding_size), "gradient of the item table")}

    def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
        """f_i = c_i (p_i - u . q_i) u: one error an item, times u."""
        user = self._user(history, server)
        errors = (1 + self.confidence * history.seen) * (history.seen - server["items"] @ user)
        return {"gradient": Product(errors[None], user[None])}, {}

    def combine(self, sums: Params, server: Params, arrived: Arrived) -> Params:
        """One step of Adam."""
        gradient = -2 * sums["gradient"] + 2 * self.regularization * server["items"]
        steps = server["steps"] + 1
        first = self.first_decay * server["first"] + (1 - self.first_decay) * gradient
        second = self.second_decay * server["second"] + (1 - self.second_decay) * gradient.square()
        root = (second / (1 - self.second_decay**steps)).sqrt() + 1e-8
        items = server["items"] - self.learning_rate * first / (1 - self.first_decay**steps) / root
        return {"items": items, "first": first, "second": second, "steps": steps}

    def scores(self, history: History, own: Params, server: Params) -> Tensor:
        """[m] u . q_i, u solved anew from the newest Q."""
        return server["items"] @ self._user(history, server)

    def digest(self, server: Params) -> Params:
        """Q q^T of every item, m x d^2, and Q^T Q, in float64; a device needs the former of its own items only."""
        items = server["items"].double()
        squares = (items[:, :, None] * items[:, None, :]).flatten(1)
        return {"items": server["items"], "squares": squares, "common": items.T @ items}

    def _user(self, history: History, server: Params) -> Tensor:
        """[d] (Q^T C Q + l I)^-1 Q^T C p, in float64; C is 1 + a on the items seen and else 1."""
        items, seen = server["items"].double(), history.seen.double()
        d = items.shape[1]
        ridge = self.regularization * torch.eye(d, dtype=items.dtype, device=items.device)
        left = server["common"] + self.confidence * (seen @ server["squares"]).reshape(d, d) + ridge
        user: Tensor = torch.linalg.solve(left, (1 + self.confidence) * (seen @ items))
        return user.to(history.seen.dtype)

    def server_working(self, world: World) -> int:
        """In float64."""
        return 2 * world.num_items * self.embedding_size**2

    def working(self, world: World) -> int:
        """The history and the errors, partly in float64, and a few d x d matrices."""
        return 12 * world.num_items + 12 * self.embedding_size**2
