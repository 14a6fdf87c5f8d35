"""Loss-based sampling: of twice as many candidates, the clients that the model serves worst take part.

Cho et al. 2022 call it power of choice. A client reports the mean loss of its own items under the table it received.

Run it:   ownview run examples/loss_based_sampling.py --rounds 20 --set clients=0.3
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

import ownview as ov


class WorstServed(ov.Cohort):
    """Chooses by the reported loss; a client that never took part reports the initial, larger one."""

    def choose(self, seen: ov.Seen, wanted: int) -> Tensor:
        """[wanted] of 2 wanted candidates, which another draw gives in every round."""
        losses = seen.reported["trouble"]
        chance = torch.Generator().manual_seed(hash((seen.seed, seen.round)) % 2**63)
        candidates = torch.randperm(len(losses), generator=chance)[: 2 * wanted].to(losses.device)
        return candidates[losses[candidates].argsort(descending=True, stable=True)][:wanted].sort().values


@dataclass(frozen=True)
class LossBased(ov.Method):
    """score = u . q_i, u private."""

    name: ClassVar[str] = "loss-based"
    summary: ClassVar[str] = "matrix factorisation; clients with large losses take part more often"
    paper: ClassVar[str] = "Cho et al. 2022 (the choice); an example"

    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """The server sees one number of every client."""
        user, items = ov.private(16, initial=ov.Normal(0.1)), ov.table(ov.shared(16, initial=ov.Normal(0.1)))
        return {"user": user, "items": items, "mine": ov.history(), "trouble": ov.reported(initial=ov.Constant(9.0))}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """The loss is noted before anything moves."""
        return (ov.Phase((ov.Step(("user", "items"), ov.Adam(self.learning_rate)),), self.local_epochs, self.noted),)

    def noted(self, p: ov.Params, context: ov.Context) -> ov.Params:
        """[] mean of -log s(x) over the client's own items."""
        return {"trouble": (p["mine"] * softplus(-self.scores(p))).sum() / p["mine"].sum().clamp(min=1)}

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"]

    def server(self, world: ov.World) -> ov.Server:
        """The choice; the mean of changes is the usual one."""
        return ov.Server(cohort=WorstServed())
