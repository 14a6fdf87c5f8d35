"""PFedRec: dual personalisation, a private score function over an item table each client fine-tunes.

Zhang, Long, Zhou, Yan, Zhang, Zhang and Yang, "Dual Personalization on Federated Recommendation", IJCAI 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.initial import Uniform
from ownview.seam.method import Method
from ownview.seam.optimizers import Sgd
from ownview.seam.portable import Factors, Logistic, Portable, Refusal
from ownview.seam.roles import Param, kept, private, table
from ownview.seam.server import Mean, Server
from ownview.seam.training import Params, Phase, Step, World


@dataclass(frozen=True)
class PFedRec(Method):
    """score = S_u(q_i): a private network S_u (one linear layer in the paper), no user vector.

    On every batch two SGD steps: first S_u with the table fixed, then, on a fresh forward pass, the table with
    S_u fixed. The table is shared by plain mean; the client predicts with the table it has just trained.
    """

    name: ClassVar[str] = "pfedrec"
    title: ClassVar[str] = "PFedRec"
    summary: ClassVar[str] = "private score function, item table fine-tuned by every client"
    paper: ClassVar[str] = "Zhang et al., IJCAI 2023"

    local_epochs: int = setting(1, "passes over the client's samples in a round", low=1, search=OneOf((1, 2, 5, 10)))
    embedding_size: int = setting(32, "length of item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    hidden_layers: tuple[int, ...] = setting((), "widths of hidden layers of the score function", low=1)
    learning_rate: float = setting(
        0.1, "SGD's rate for the score function", above=0, search=Between(0.01, 1.0, log=True)
    )
    table_rate_factor: float = setting(
        80.0,
        "the table's rate is learning_rate * number of items * this factor",
        above=0,
        search=Between(1.0, 1000.0, log=True),
    )

    def server(self, world: World) -> Server:
        """A plain mean."""
        return Server(Mean("uniform"))

    def params(self, world: World) -> dict[str, Param]:
        """Private layers of the score function, and an item table that the client keeps as it trained it."""
        widths = (self.embedding_size, *self.hidden_layers, 1)
        layers: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise(widths)):
            initial = Uniform(1 / math.sqrt(inputs))
            layers[f"weight{depth}"] = private(outputs, inputs, initial=initial)
            layers[f"bias{depth}"] = private(outputs, initial=initial)
        return {**layers, "items": table(kept(self.embedding_size))}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Score function, then table, on every batch."""
        network = tuple(name for name in self.params(world) if name != "items")
        table_rate = self.learning_rate * world.num_items * self.table_rate_factor
        steps = (Step(network, Sgd(self.learning_rate)), Step(("items",), Sgd(table_rate)))
        return (Phase(steps, self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] S_u(q_i), with ReLU between layers."""
        hidden, last = p["items"], len(self.hidden_layers)
        for depth in range(last):
            hidden = torch.relu(hidden @ p[f"weight{depth}"].T + p[f"bias{depth}"])
        return hidden @ p[f"weight{last}"][0] + p[f"bias{last}"]

    def portable(self, received: Params, world: World) -> Portable:
        """One linear layer over the shared table; its bias is the weight of a value that every item has, 1."""
        if self.hidden_layers:
            return Refusal("scores by a private network with hidden layers, which must be trained at home")
        items = torch.cat([received["items"], torch.ones_like(received["items"][:, :1])], 1)
        tuned = "every client of the model goes on to tune the item table for itself; here the shared table is taken"
        return Factors(items, Logistic(self.negatives), left_out=(tuned,))
