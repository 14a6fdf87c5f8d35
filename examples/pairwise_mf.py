"""A method of your own in one file: matrix factorisation with an item bias, trained on pairs (BPR).

Run it:   ownview run examples/pairwise_mf.py --rounds 20
Test it:  python -c "from ownview.testing import conform; from examples.pairwise_mf import *; conform(PairwiseMF())"
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import softplus

import ownview as ov


@dataclass(frozen=True)
class PairwiseMF(ov.Method):
    """score = u . q_i + b_i, u private; loss = mean of -log s(x_p - x_n) over pairs of a positive and a negative."""

    name: ClassVar[str] = "pairwise-mf"
    summary: ClassVar[str] = "matrix factorisation with an item bias, trained on pairs"
    paper: ClassVar[str] = "Rendle et al. 2009 (the loss); an example"
    pairs: ClassVar[bool] = True

    embedding_size: int = ov.setting(16, "length of user and item vectors", low=1)
    learning_rate: float = ov.setting(0.01, "Adam's rate", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        d, small = self.embedding_size, ov.Normal(0.1)
        items, bias = ov.shared(d, initial=small), ov.shared(initial=ov.Constant(0.0))
        return {"user": ov.private(d, initial=small), "items": ov.table(items), "bias": ov.table(bias)}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        return (ov.Phase((ov.Step(("user", "items", "bias"), ov.Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        return p["items"] @ p["user"] + p["bias"]

    def loss(self, p: ov.Params, batch: ov.Batch, context: ov.Context) -> Tensor:
        scores, negative = self.scores(p), batch.mask * (1 - batch.labels)
        pairs = softplus(scores[batch.rows] - scores[batch.partners])
        return (negative * pairs).sum() / negative.sum().clamp(min=1)
