"""The server: a weighted mean of the clients' changes, and how it is applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.federation.options import FederationOptions
from ownview.federation.uploads import Upload
from ownview.seam.training import Params


class MeanChange:
    """Sums up w_u (x_u - x) over clients, block by block; x the value sent out, x_u the one sent back.

    The mean of full tables equals x + sum_u w_u (x_u - x) / sum_u w_u, and rows a client did not touch add zero,
    so touched rows are all that is needed.

    Of tables in `by_row` a row is divided by the weights of those clients alone whose samples of the round are about
    it, and what others send of it, noise or an own table's row of earlier rounds, does not count. The mean change of a
    row nobody touched is zero.

    Args:
        shared: what is averaged, as sent out.
        by_row: names of tables averaged over the clients that touched a row.
    """

    def __init__(self, shared: Params, by_row: Collection[str] = ()) -> None:
        self.sums = {name: torch.zeros_like(value) for name, value in shared.items()}
        self.weight: Tensor | None = None
        self.by_row = frozenset(by_row)
        counted = next((shared[name] for name in self.by_row), None)
        self.row_weights = None if counted is None else counted.new_zeros(len(counted), dtype=torch.float64)

    def add(self, upload: Upload) -> None:
        """Take one block's changes."""
        total = upload.weights.sum(dtype=torch.float64)
        self.weight = total if self.weight is None else self.weight + total
        if self.row_weights is not None:
            touched = upload.samples.sampled_rows.to(self.row_weights.dtype)
            add_rows(self.row_weights, upload.samples.items, _weighted(touched, upload.weights))
        for name, value in self.sums.items():
            if name in upload.rows:
                add_rows(value, upload.samples.items, _weighted(upload.rows[name], upload.weights))
            else:
                change = upload.whole[name]
                counted = change * _touched(upload.samples, change) if name in self.by_row else change
                value.add_(_weighted(counted, upload.weights).sum(0))

    def mean(self) -> Params:
        """The mean change; zero where nobody took part."""
        if self.weight is None:
            return self.sums
        return {name: total / self._divisor(name, total, self.weight) for name, total in self.sums.items()}

    def _divisor(self, name: str, total: Tensor, weight: Tensor) -> Tensor:
        if self.row_weights is None or name not in self.by_row:
            return weight.to(total.dtype)
        by_row = torch.where(self.row_weights > 0, self.row_weights, 1.0)  # sums of rows nobody touched are zero
        return by_row.to(total.dtype).reshape(-1, *[1] * (total.dim() - 1))


def _touched(samples: Samples, like: Tensor) -> Tensor:
    """[B, m, 1, ...] 1 where a client's samples are about a row, else 0, as wide as `like` [B, m, ...]."""
    here = torch.zeros(like.shape[:2], dtype=like.dtype, device=like.device)
    here.scatter_add_(1, samples.items, samples.sampled_rows.to(like.dtype))
    return here.reshape(*here.shape, *[1] * (like.dim() - 2))


def _weighted(change: Tensor, weights: Tensor) -> Tensor:
    return change * weights.reshape(-1, *[1] * (change.dim() - 1)).to(change.dtype)


def add_rows(table: Tensor, items: Tensor, rows: Tensor) -> None:
    """table[items[b, r]] += rows[b, r], in an order that is the same on every run.

    Args:
        table: [m, ...].
        items: [B, R], each client's distinct but for padding, whose rows are zero.
        rows: [B, R, ...].
    """
    if table.device.type == "cpu":
        flat = items.reshape(-1, *[1] * (table.dim() - 1)).expand(items.numel(), *table.shape[1:])
        table.scatter_add_(0, flat, rows.reshape(flat.shape))
        return
    # Atomic additions of floats on a GPU come in any order. Scattered into one table per client (no collisions but
    # padding, which adds zero) and then summed, they always come in the same one.
    step = max(1, 2**28 // (table.numel() * table.element_size()))
    for start in range(0, len(items), step):
        index = items[start : start + step]
        spread = torch.zeros((len(index), *table.shape), dtype=table.dtype, device=table.device)
        wide = index.reshape(*index.shape, *[1] * (table.dim() - 1)).expand(*index.shape, *table.shape[1:])
        table += spread.scatter_add_(1, wide, rows[start : start + step]).sum(0)


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
