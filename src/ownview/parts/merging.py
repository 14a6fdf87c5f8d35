"""Merging a client's own item table with the one it received, row by row: Q_m = Q_l + rho (Q_g - Q_l).

Chen, Zhang, Zhang, Luo and Li, "Breaking the Aggregation Bottleneck in Federated Recommendation: A Personalized Model
Merging Approach" (FedEM), equations 7 to 10. FedEM and the plug-in elastic-merging share it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ownview.seam.initial import Constant, Uniform
from ownview.seam.roles import Param, private
from ownview.seam.training import Context, Params

MERGES = ("em", "dm", "sm", "sr")
"""Elastic (a weight for every item), dynamic (one learnt weight), static merging (one fixed weight), replacement."""

MERGED_ROWS = ("all", "trained")
"""The paper merges all rows; merging only those a client trains in the round keeps what it learnt of the others."""


@dataclass(frozen=True)
class Merging:
    """Weights rho of the received table, and what makes them.

    em: rho_i = sigmoid(MLP([q_g - q_l, q_l])), ReLU inside; dm: rho = sigmoid(t) with a learnt number t;
    sm: a fixed rho; sr: rho = 1.

    Args:
        kind: one of `MERGES`.
        own: name of the client's own table.
        received: name of the table it received.
        width: d of both.
        layers: widths of the adapter's hidden layers.
        fixed: rho of static merging.
    """

    kind: str
    own: str
    received: str
    width: int
    layers: tuple[int, ...] = (16, 8)
    fixed: float = 0.5

    @property
    def learns(self) -> bool:
        """Whether rho is learnt, by an adapter."""
        return self.kind in ("em", "dm")

    def params(self) -> dict[str, Param]:
        """The adapter's, private; none where rho is not learnt."""
        if self.kind == "dm":
            return {"adapter": private(initial=Constant(0.0))}
        if self.kind != "em":
            return {}
        adapter: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise((2 * self.width, *self.layers, 1))):
            initial = Uniform(1 / math.sqrt(inputs))
            adapter[f"adapter{depth}"] = private(inputs, outputs, initial=initial)
            adapter[f"adapter_bias{depth}"] = private(outputs, initial=initial)
        return adapter

    def weights(self, p: Params) -> Tensor:
        """[R] rho."""
        if self.kind == "em":
            # [q_g - q_l, q_l] times the first matrix, by the difference of its halves and not of the tables.
            upper, lower = p["adapter0"].reshape(2, self.width, -1).unbind(0)
            hidden = p[self.received] @ upper + (p[self.own] @ (lower - upper) + p["adapter_bias0"])
            for depth in range(1, len(self.layers) + 1):
                hidden = torch.relu(hidden) @ p[f"adapter{depth}"] + p[f"adapter_bias{depth}"]
            return torch.sigmoid(hidden).squeeze(-1)
        if self.kind == "dm":
            return torch.sigmoid(p["adapter"]).expand(p[self.own].shape[0])
        return torch.full_like(p[self.own][:, 0], 1.0 if self.kind == "sr" else self.fixed)

    def merged(self, p: Params) -> Tensor:
        """[R, d] the merged rows."""
        return p[self.own] + self.weights(p).unsqueeze(-1) * (p[self.received] - p[self.own])

    def opening(self, p: Params, context: Context) -> Params:
        """The own table, replaced by the merged one."""
        return {self.own: self.merged(p)}
