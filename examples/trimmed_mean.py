"""A server rule of your own: of every number the highest and lowest tenth of the changes do not count.

Of an item's row only clients count whose samples were about it (the coordinate-wise trimmed mean, Yin et al. 2018).

Run it:   ownview run examples/trimmed_mean.py --rounds 20
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import ownview as ov


def trimmed(changes: Tensor, weights: Tensor, share: float) -> Tensor:
    """[n, k, ...] changes of n clients and [n, k] their weights, 0 where a client sent nothing -> [k, ...]."""
    sent = (weights > 0).reshape(*weights.shape, *[1] * (changes.dim() - 2)).expand_as(changes)
    ordered = torch.where(sent, changes, torch.inf).sort(0).values  # what was not sent comes last
    there = sent.sum(0)
    cut = torch.minimum((share * there).floor(), (there - 1).clamp(min=0) // 2)
    rank = torch.arange(len(changes), device=changes.device).reshape(-1, *[1] * (changes.dim() - 1))
    counts = (rank >= cut) & (rank < there - cut)
    return torch.where(counts, ordered, 0).sum(0) / counts.sum(0).clamp(min=1)


@dataclass(frozen=True)
class TrimmedMF(ov.Method):
    """score = u . q_i, u private; the table moves by the trimmed mean of its clients' changes."""

    name: ClassVar[str] = "trimmed-mf"
    summary: ClassVar[str] = "matrix factorisation under a trimmed mean"
    paper: ClassVar[str] = "Yin et al. 2018 (the rule); an example"

    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0)
    share: float = ov.setting(0.1, "of changes that do not count, at either end", low=0, high=0.49)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """A vector of the client's own and a shared table."""
        small = ov.Normal(0.1)
        return {"user": ov.private(16, initial=small), "items": ov.table(ov.shared(16, initial=small))}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Both move together."""
        return (ov.Phase((ov.Step(("user", "items"), ov.Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"]

    def server(self, world: ov.World) -> ov.Server:
        """The rule needs changes number by number; the server gets them for some rows at a time."""
        return ov.Server(ov.Rule(lambda changes, weights: trimmed(changes, weights, self.share), "coordinates"))
