"""FedProx: training is held near what the round began with, by a penalty on how far it has moved.

Run it:   ownview run examples/fedprox.py --rounds 20 --set proximal=0.1
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

import ownview as ov


@dataclass(frozen=True)
class FedProx(ov.Method):
    """loss = cross-entropy + mu / 2 |Q - Q_received|^2 over the rows at hand; the others do not move."""

    name: ClassVar[str] = "fedprox"
    title: ClassVar[str] = "FedProx"
    summary: ClassVar[str] = "matrix factorisation with a proximal term"
    paper: ClassVar[str] = "Li et al. 2020 (the penalty); an example"

    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0)
    proximal: float = ov.setting(0.1, "mu, weight of the penalty", low=0, search=ov.Between(1e-3, 1.0, log=True))

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """The anchor begins every round anew, is never sent, and nothing of it stays."""
        small = ov.Normal(0.1)
        items = ov.table(ov.shared(16, initial=small))
        return {"user": ov.private(16, initial=small), "items": items, "anchor": ov.table(ov.fresh(16))}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Before the first batch the anchor becomes the table as it was received."""
        step = ov.Step(("user", "items"), ov.Adam(self.learning_rate))
        return (ov.Phase((step,), self.local_epochs, opening=lambda p, context: {"anchor": p["items"]}),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"]

    def loss(self, p: ov.Params, batch: ov.Batch, context: ov.Context) -> Tensor:
        """Rows that no sample is about have not moved, so that padding adds nothing."""
        moved = (p["items"] - p["anchor"]).square().sum()
        return ov.cross_entropy(self.scores(p), batch) + self.proximal / 2 * moved
