"""An asynchronous server: uploads count less the longer ago their clients received what they worked on, with momentum.

Xie et al. 2019 (FedAsync) and Nguyen et al. 2022 (FedBuff) weigh so. Who is slow is a matter of the federation:

Run it:   ownview run examples/asynchronous_server.py --rounds 50 --set clients=100 \\
              --set devices=tiers=0.7:1+0.3:10,buffer=20,staleness=0
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import ownview as ov


@dataclass(frozen=True)
class AsynchronousMF(ov.Method):
    """score = u . q_i, u private; weights w_u (1 + t_u)^-a, t_u rounds since the client received, v <- b v + mean."""

    name: ClassVar[str] = "asynchronous-mf"
    summary: ClassVar[str] = "matrix factorisation; late uploads count less"
    paper: ClassVar[str] = "Xie et al. 2019, Nguyen et al. 2022 (the weights); an example"

    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0)
    discount: float = ov.setting(0.5, "a, how fast uploads lose weight", low=0)
    momentum: float = ov.setting(0.3, "b, of the server", low=0, high=0.99)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """The server holds a velocity that it never sends."""
        user, items = ov.private(16, initial=ov.Normal(0.1)), ov.shared(16, initial=ov.Normal(0.1))
        return {"user": user, "items": ov.table(items), "velocity": ov.table(ov.held(16))}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Both move together."""
        return (ov.Phase((ov.Step(("user", "items"), ov.Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"]

    def server(self, world: ov.World) -> ov.Server:
        """The rule needs every upload, because each has a weight of its own."""
        return ov.Server(ov.Rule(self.combined, "each"))

    def combined(self, changes: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
        """The change of the table, and the velocity that is kept."""
        weights = arrived.weights * (1.0 + arrived.staleness) ** -self.discount
        mean = torch.einsum("u,u...->...", weights / weights.sum(), changes["items"])
        velocity = self.momentum * values["velocity"] + mean
        return {"items": velocity, "velocity": velocity}
