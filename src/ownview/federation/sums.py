"""The sums of what clients send, and the one place that everything passes on its way to the server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.federation.privacy import Privacy
from ownview.seam.gathering import Product, Summand, Summands
from ownview.seam.training import Params


@dataclass(frozen=True)
class Gate:
    """What every summand passes before the server sees it: first clipped, then noisy, each client for itself.

    Args:
        privacy: None lets everything pass as it is.
        key: of the round.
    """

    privacy: Privacy | None
    key: int

    def let_out(self, client: Tensor, sent: Params) -> Params:
        """One client's summands, written out, as they leave.

        Args:
            client: [] its position.
            sent: by name, whole summands.
        """
        if self.privacy is None:
            return sent
        if math.isfinite(self.privacy.clip):
            norm = torch.stack([value.square().sum() for value in sent.values()]).sum().sqrt()
            factor = (self.privacy.clip / norm.clamp(min=1e-30)).clamp(max=1.0)
            sent = {name: value * factor for name, value in sent.items()}
        return {
            name: self.privacy.noisy(value[None], derive(self.key, name), client[None])[0]
            for name, value in sent.items()
        }


class Sums:
    """Adds up summands over clients, block by block; never holds more than one written-out summand of a product.

    Args:
        declared: by name.
        gate: that everything passes.
        like: a tensor of the device and type to add up in.
    """

    def __init__(self, declared: Mapping[str, Summand], gate: Gate, like: Tensor) -> None:
        self.declared, self.gate = declared, gate
        self.values: Params = {name: like.new_zeros(one.shape) for name, one in declared.items()}

    def add(self, clients: Tensor, sent: Summands) -> None:
        """Take a block's summands.

        Args:
            clients: [B] positions.
            sent: by name, [B, ...]; of products both factors are [B, k, ...].
        """
        self._require_declared(sent)
        if self.gate.privacy is None:
            for name, one in sent.items():
                total = _summed_product(one) if isinstance(one, Product) else one.sum(0)
                self.values[name] += total.reshape(self.values[name].shape)
            return
        for k in range(len(clients)):
            whole = {name: self._written_out(name, one, k) for name, one in sent.items()}
            for name, value in self.gate.let_out(clients[k], whole).items():
                self.values[name] += value

    def _written_out(self, name: str, one: Tensor | Product, k: int) -> Tensor:
        value = one.left[k].T @ one.right[k] if isinstance(one, Product) else one[k]
        return value.reshape(self.values[name].shape)

    def _require_declared(self, sent: Summands) -> None:
        if set(sent) != set(self.declared):
            raise SettingError(
                f"a client sends {sorted(sent)}; declared as leaving the device is {sorted(self.declared)}"
            )
        for name, one in sent.items():
            size = one.left.shape[-1] * one.right.shape[-1] if isinstance(one, Product) else one[0].numel()
            if size != prod(self.declared[name].shape):
                raise SettingError(
                    f"summand {name!r} came with {size} numbers; declared is the shape {self.declared[name].shape}"
                )


def _summed_product(one: Product) -> Tensor:
    """[a, b] sum over clients and k of left^T right."""
    return one.left.reshape(-1, one.left.shape[-1]).T @ one.right.reshape(-1, one.right.shape[-1])
