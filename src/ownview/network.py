"""The network of neural collaborative filtering: from a user's vector and an item's to a score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ownview.initial import Uniform
from ownview.types import Param, Params


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

    def params(self, *, shared: bool) -> dict[str, Param]:
        """weight0 [2d, h], bias0 [h], and so on; U(-1/sqrt(inputs), 1/sqrt(inputs))."""
        made: dict[str, Param] = {}
        for depth, (inputs, outputs) in enumerate(pairwise(self.widths)):
            initial = Uniform(1 / math.sqrt(inputs))
            made[f"weight{depth}"] = Param((inputs, outputs), shared=shared, initial=initial)
            made[f"bias{depth}"] = Param((outputs,), shared=shared, initial=initial)
        return made

    def scores(self, p: Params) -> Tensor:
        """[R] of the rows of p["items"] for p["user"]."""
        # The user's half of the first layer is the same for every row, so it is worked out once.
        upper, lower = p["weight0"][: self.size], p["weight0"][self.size :]
        hidden = p["user"] @ upper + p["items"] @ lower + p["bias0"]
        for depth in range(1, len(self.widths) - 1):
            hidden = torch.relu(hidden) @ p[f"weight{depth}"] + p[f"bias{depth}"]
        return hidden.squeeze(-1)
