"""SCAFFOLD: control variates take the drift of clients out of their steps; a last phase without steps closes a round.

Run it:   ownview run examples/scaffold.py --rounds 20 --set clients=0.5
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

import ownview as ov

SMALL, ZERO = ov.Normal(0.1), ov.Constant(0.0)


@dataclass(frozen=True)
class Scaffold(ov.Method):
    """K steps Y <- Y - r (g(Y) - C_u + C) from the received X; C_u <- C_u - C + (X - Y) / (K r); C is the mean C_u."""

    name: ClassVar[str] = "scaffold"
    title: ClassVar[str] = "SCAFFOLD"
    summary: ClassVar[str] = "matrix factorisation with control variates"
    paper: ClassVar[str] = "Karimireddy et al. 2020; an example"

    batch_size: int = ov.setting(100_000, "samples in a batch: all, so that K is local_epochs", low=1)
    learning_rate: float = ov.setting(1.0, "r, of gradient descent", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Two tables travel, the items' and C; a client keeps C_u, and X for as long as the round lasts."""
        mine = {"user": ov.private(16, initial=SMALL), "own control": ov.table(ov.private(16, initial=ZERO))}
        shared = {"items": ov.table(ov.shared(16, initial=SMALL)), "control": ov.table(ov.shared(16, initial=ZERO))}
        return {**mine, **shared, "anchor": ov.table(ov.fresh(16))}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Training; what follows it is the opening of a phase without steps."""
        step = ov.Step(("user", "items"), ov.Sgd(self.learning_rate))
        training = ov.Phase((step,), self.local_epochs, opening=lambda p, context: {"anchor": p["items"]})
        return training, ov.Phase((), 0, opening=self.closing, everywhere=False)

    def closing(self, p: ov.Params, context: ov.Context) -> ov.Params:
        """The client's new control, and its change as that of the shared one."""
        change = (p["anchor"] - p["items"]) / (self.local_epochs * self.learning_rate) - p["control"]
        return {"own control": p["own control"] + change, "control": p["control"] + change}

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"]

    def loss(self, p: ov.Params, batch: ov.Batch, context: ov.Context) -> Tensor:
        """The slope of the second term is C - C_u; rows without a sample stay."""
        drift = (p["control"] - p["own control"]) * p["items"]
        return ov.cross_entropy(self.scores(p), batch) + (drift.sum(-1) * (batch.counts > 0)).sum()

    def server(self, world: ov.World) -> ov.Server:
        """The mean change of the items; C moves by the sum of changes over all n clients, of which some took part."""

        def combined(mean: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
            return {**mean, "control": mean["control"] * (arrived.clients / world.num_clients)}

        return ov.Server(ov.Rule(combined, weighting="uniform"))
