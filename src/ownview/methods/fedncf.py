"""FedNCF: federated neural collaborative filtering, a shared network over user and item vector.

Perifanis and Efraimidis, "Federated Neural Collaborative Filtering", Knowledge-Based Systems 2022.
Settings as PFedCLR's and FedEM's papers run it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from ownview.initial import Normal, Uniform
from ownview.method import Method
from ownview.optimizers import Adam
from ownview.search import Between, OneOf
from ownview.settings import setting
from ownview.types import Param, Params, Phase, Step, World


@dataclass(frozen=True)
class FedNCF(Method):
    """score = MLP([u, q_i]), ReLU inside, with a private user vector u; the item table and the MLP are shared.

    Everything is trained together. The default network is 2d-d-d/2-d/4-1.
    """

    name: ClassVar[str] = "fedncf"
    title: ClassVar[str] = "FedNCF"
    summary: ClassVar[str] = "private user vector; item table and a network over both shared"
    paper: ClassVar[str] = "Perifanis and Efraimidis 2022"

    embedding_size: int = setting(16, "d, length of user and item vectors", low=4, search=OneOf((8, 16, 32, 64)))
    hidden_layers: tuple[int, ...] = setting((), "widths of hidden layers; none given: d, d/2, d/4", low=1)
    learning_rate: float = setting(0.01, "Adam's rate", above=0, search=Between(1e-4, 0.1, log=True))

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the network, from its input to its output."""
        size = self.embedding_size
        return (2 * size, *(self.hidden_layers or (size, size // 2, size // 4)), 1)

    def params(self, world: World) -> dict[str, Param]:
        """U private, Q and the network shared."""
        network: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise(self.widths)):
            initial = Uniform(1 / math.sqrt(inputs))
            network[f"weight{depth}"] = Param((inputs, outputs), shared=True, initial=initial)
            network[f"bias{depth}"] = Param((outputs,), shared=True, initial=initial)
        size = (self.embedding_size,)
        return {
            "user": Param(size, initial=Normal(1.0)),
            "items": Param(size, rows=True, shared=True, initial=Normal(1.0)),
            **network,
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together."""
        return (Phase((Step(tuple(self.params(world)), Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] MLP([u, q_i])."""
        # The user's half of the first layer is the same for every row, so it is worked out once.
        upper, lower = p["weight0"][: self.embedding_size], p["weight0"][self.embedding_size :]
        hidden = p["user"] @ upper + p["items"] @ lower + p["bias0"]
        for depth in range(1, len(self.widths) - 1):
            hidden = torch.relu(hidden) @ p[f"weight{depth}"] + p[f"bias{depth}"]
        return hidden.squeeze(-1)
