"""The network of neural collaborative filtering: from a user's vector and an item's to a score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ownview.seam.initial import Uniform
from ownview.seam.optimizers import Adam, Sgd
from ownview.seam.roles import PRIVATE, Param, Role
from ownview.seam.training import Params, Step


@dataclass(frozen=True)
class Network:
    """MLP([u, q_i]), ReLU between layers.

    Args:
        size: d, length of user and of item vectors.
        hidden: widths between the input, 2d, and the output, 1.
    """

    size: int
    hidden: tuple[int, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """From the input to the output."""
        return (2 * self.size, *self.hidden, 1)

    def params(self, role: Role) -> dict[str, Param]:
        """weight0 [2d, h], bias0 [h], and so on; U(-1/sqrt(inputs), 1/sqrt(inputs))."""
        made: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise(self.widths)):
            initial = Uniform(1 / math.sqrt(inputs))
            made[f"weight{depth}"] = Param((inputs, outputs), role, initial=initial)
            made[f"bias{depth}"] = Param((outputs,), role, initial=initial)
        return made

    def scores(self, p: Params) -> Tensor:
        """[R] of the rows of p["items"] for p["user"]."""
        # The user's half of the first layer is the same for every row, so it is worked out once. Slopes of slices would
        # fix the number of clients, and what is compiled would have to be compiled again for every other.
        upper, lower = p["weight0"].reshape(2, self.size, -1).unbind(0)
        return self.output(p, p["user"] @ upper + p["items"] @ lower + p["bias0"])

    def output(self, p: Params, hidden: Tensor) -> Tensor:
        """[...] from what the first layer [..., h] makes of its input, before the ReLU."""
        for depth in range(1, len(self.widths) - 1):
            hidden = torch.relu(hidden) @ p[f"weight{depth}"] + p[f"bias{depth}"]
        return hidden.squeeze(-1)

    def step(self, optimizer: str, rate: float, factor: float, num_items: int) -> Step:
        """Network, user vector and item table together, by Adam ("adam") or SGD ("sgd").

        SGD moves the user vector `factor` times as fast as the network, and the table `num_items` times as fast as
        that, which undoes the dilution of a mean over clients most of whom did not touch a row.
        """

        def moving(names: tuple[str, ...], times: float, alongside: Step | None = None) -> Step:
            return Step(names, Adam(rate) if optimizer == "adam" else Sgd(rate * times), alongside=alongside)

        vectors = moving(("user",), factor, moving(("items",), factor * num_items))
        return moving(tuple(self.params(PRIVATE)), 1.0, vectors)
