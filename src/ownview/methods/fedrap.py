"""FedRAP: additive personalisation, a shared item table plus a private one.

Li, Long and Zhou, "Federated Recommendation with Additive Personalization", ICLR 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.curriculum import CURRICULA, strength
from ownview.parts.products import row_products
from ownview.seam.initial import Normal, Uniform
from ownview.seam.method import Method, cross_entropy
from ownview.seam.optimizers import Sgd
from ownview.seam.roles import Param, private, shared, table
from ownview.seam.server import Mean, Server
from ownview.seam.training import Batch, Context, Params, Phase, Step, World


@dataclass(frozen=True)
class FedRAP(Method):
    """score = w . (d_i + c_i) + b with private w, b and table D, and a shared table C.

    loss = mean cross-entropy - lambda(a) mean (d - c)^2 + mu(a) mean |c|, the means over the batch's samples and the
    dimensions, a the round: the two tables are driven apart, and the shared one towards sparsity.

    `update` says how |c| is made small: by its subgradient, or by soft thresholding after every step (the paper's
    appendix, eq. 13), which makes values exactly 0. Both agree until a value would cross 0.

    Variants: `full`; `c` without D; `d` without C (then nothing leaves the client).
    """

    name: ClassVar[str] = "fedrap"
    title: ClassVar[str] = "FedRAP"
    summary: ClassVar[str] = "shared sparse item table plus a private one"
    paper: ClassVar[str] = "Li et al., ICLR 2024"

    variant: str = setting("full", "both tables, or only one of them", choices=("full", "c", "d"))
    embedding_size: int = setting(32, "length of item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    batch_size: int = setting(2048, "samples in a batch", low=1)
    network_rate: float = setting(1e-4, "SGD's rate for w and b", above=0, search=Between(1e-5, 1.0, log=True))
    table_rate: float = setting(1e3, "SGD's rate for the tables", above=0, search=Between(1.0, 1e4, log=True))
    step_decay: float = setting(
        0.95, "factor on both rates after every batch of a round", above=0, high=1, search=Between(0.9, 1.0)
    )
    round_decay: float = setting(
        0.97, "factor on both rates after every round", above=0, high=1, search=Between(0.9, 1.0)
    )
    apart: float = setting(
        1e-3, "v1, the most weight of the tables' difference", low=0, search=Between(1e-5, 1.0, log=True)
    )
    sparse: float = setting(
        1e-3, "v2, the most weight of the shared table's norm", low=0, search=Between(1e-5, 1.0, log=True)
    )
    norm: str = setting("l1", "of the shared table: |c|, c^2, or no penalty", choices=("l1", "l2", "none"))
    update: str = setting("subgradient", "how |c| is made small", choices=("subgradient", "proximal"))
    common_scale: float = setting(1.0, "spread of the initial C; with 0, thresholding can keep C sparse", low=0)
    curriculum: str = setting("tanh", "how both weights go with the rounds", choices=CURRICULA)
    stop_below: float = setting(0.0, "a client ends its round when its mean loss changes relatively by less", low=0)
    weight_decay: float = setting(0.0, "pulls w, b and the batch's rows to 0: x (weight decay) in the gradient", low=0)
    clip_gradient: float = setting(0.0, "largest norm of C's gradient in every step, the paper's tau; 0: any", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.update == "proximal" and self.norm != "l1":
            raise SettingError(f"FedRAP setting update='proximal': expected norm='l1' with it, found {self.norm!r}")

    def server(self, world: World) -> Server:
        """A plain mean."""
        return Server(Mean("uniform"))

    def params(self, world: World) -> dict[str, Param]:
        """Private w, b and table D; a shared table C."""
        size = self.embedding_size
        linear = Uniform(1 / math.sqrt(size))
        tables = {
            "own": table(private(size)),
            "common": table(shared(size, initial=Normal(self.common_scale))),
        }
        left_out = {"full": "", "c": "own", "d": "common"}[self.variant]
        chosen = {name: param for name, param in tables.items() if name != left_out}
        return {"weight": private(size, initial=linear), "bias": private(initial=linear), **chosen}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves by one forward pass; the tables have a rate of their own."""
        step: Step | None = None
        for name in (name for name, param in self.params(world).items() if param.rows):
            shrink = self.sparse_weight if name == "common" and self.update == "proximal" else None
            clip = self.clip_gradient if name == "common" else 0.0
            step = Step((name,), Sgd(self.table_rate, self.step_decay, self.round_decay), step, shrink, clip)
        network = Sgd(self.network_rate, self.step_decay, self.round_decay)
        return (Phase((Step(("weight", "bias"), network, step),), self.local_epochs, tolerance=self.stop_below),)

    def scores(self, p: Params) -> Tensor:
        """[R] w . (d_i + c_i) + b."""
        return self._items(p) @ p["weight"] + p["bias"]

    def _items(self, p: Params) -> Tensor:
        """[R, d] d_i + c_i."""
        return p["own"] + p["common"] if self.variant == "full" else p["own" if self.variant == "d" else "common"]

    def by_round(self, number: int) -> Mapping[str, float]:
        """How strong both penalties are."""
        return {"strength": strength(self.curriculum, number)}

    def readings(self, p: Params) -> Params:
        """[m, d] the sum of both tables, where there are two."""
        return {"merged": p["own"] + p["common"]} if self.variant == "full" else {}

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] cross-entropy and the two penalties."""
        total = cross_entropy(row_products(self._items(p), p["weight"]) + p["bias"], batch)
        if self.variant == "full":
            weight = self.apart * context.numbers["strength"] * batch.counts / batch.mask.sum()
            total = total - weight @ (p["own"] - p["common"]).square().mean(-1)
        if self.variant != "d" and self.norm != "none":
            # A proximal step sees to the penalty itself; the loss still holds its value, but not its gradient.
            common = p["common"].detach() if self.update == "proximal" else p["common"]
            size = common.abs() if self.norm == "l1" else common.square()
            total = total + self.sparse_weight(batch, context) @ size.sum(-1)
        return total + self._decay(p, batch) if self.weight_decay else total

    def _decay(self, p: Params, batch: Batch) -> Tensor:
        """[] 0, whose gradient is x times the weight decay: of w and b, and of the tables' rows in the batch."""
        here = (batch.counts > 0).to(p["weight"])
        half = self.weight_decay / 2 * (p["weight"].square().sum() + p["bias"].square())
        for name in (one for one in ("own", "common") if one in p):
            half = half + self.weight_decay / 2 * (here @ p[name].square().sum(-1))
        return half - half.detach()

    def sparse_weight(self, batch: Batch, context: Context) -> Tensor:
        """[R] mu(a) / d times the row's share of the batch: what |c| of one value weighs in the loss."""
        weight = self.sparse / self.embedding_size * context.numbers["strength"]
        return weight * batch.counts / batch.mask.sum()
