"""How the server applies the clients' mean change."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ownview.federation.options import FederationOptions
from ownview.seam.training import Params


class ServerOptimizer:
    """Applies the mean change d to the shared values x.

    plain:     x <- x + lr d
    momentum:  v <- b v + d;  x <- x + lr v
    adam:      m <- b m + (1 - b) d;  v <- 0.99 v + 0.01 d^2;  x <- x + lr m' / (sqrt(v') + 1e-8), bias-corrected
               (Reddi et al. 2021, "Adaptive Federated Optimization", with their second decay)
    """

    second_decay = 0.99

    def __init__(self, options: FederationOptions, shared: Params) -> None:
        self.options = options
        kept = {"plain": 0, "momentum": 1, "adam": 2}[options.server_optimizer]
        self.moments = [{name: torch.zeros_like(value) for name, value in shared.items()} for _ in range(kept)]
        self.steps = 0

    def apply(self, shared: Params, change: Params) -> Params:
        """New shared values; the old ones are not touched, because clients may still stand on them."""
        self.steps += 1
        return {name: value + self._move(name, change[name]) for name, value in shared.items()}

    def _move(self, name: str, change: Tensor) -> Tensor:
        rate, decay = self.options.server_learning_rate, self.options.server_momentum
        if self.options.server_optimizer == "plain":
            return rate * change
        if self.options.server_optimizer == "momentum":
            self.moments[0][name] = decay * self.moments[0][name] + change
            return rate * self.moments[0][name]
        self.moments[0][name] = decay * self.moments[0][name] + (1 - decay) * change
        self.moments[1][name] = self.second_decay * self.moments[1][name] + (1 - self.second_decay) * change**2
        first = self.moments[0][name] / (1 - decay**self.steps)
        second = self.moments[1][name] / (1 - self.second_decay**self.steps)
        return rate * first / (second.sqrt() + 1e-8)

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"server.{k}.{name}": v for k, kept in enumerate(self.moments) for name, v in kept.items()}
        return packed | {"server.steps": torch.tensor(self.steps)}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        self.steps = int(packed["server.steps"])
        for k, kept in enumerate(self.moments):
            for name, value in kept.items():
                kept[name] = packed[f"server.{k}.{name}"].to(value.device)
