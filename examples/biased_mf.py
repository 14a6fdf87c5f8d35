"""A method of your own in one file: FedMF with a private bias for every reader and a shared one for every item.

Run it:   ownview run examples/biased_mf.py --rounds 20
Test it:  python -c "from ownview.testing import conform; from examples.biased_mf import BiasedMF; conform(BiasedMF())"
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

import ownview as ov


@dataclass(frozen=True)
class BiasedMF(ov.Method):
    """score = u . q_i + a + b_i, with u and a private, q_i and b_i shared."""

    name: ClassVar[str] = "biased-mf"
    title: ClassVar[str] = "BiasedMF"
    summary: ClassVar[str] = "matrix factorisation with biases"
    paper: ClassVar[str] = "an example"

    embedding_size: int = ov.setting(16, "length of user and item vectors", low=1)
    learning_rate: float = ov.setting(0.01, "Adam's rate", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """What a client holds, and what of it is shared."""
        size, small, zero = self.embedding_size, ov.Normal(0.1), ov.Constant(0.0)
        return {
            "user": ov.private(size, initial=small),
            "offset": ov.private(initial=zero),
            "items": ov.table(ov.shared(size, initial=small)),
            "item_offset": ov.table(ov.shared(initial=zero)),
        }

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Everything moves together."""
        step = ov.Step(tuple(self.params(world)), ov.Adam(self.learning_rate))
        return (ov.Phase((step,), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        return p["items"] @ p["user"] + p["offset"] + p["item_offset"]
