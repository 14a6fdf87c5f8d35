"""How research code trains federated recommenders: a module copy, a DataLoader and a dense Adam for every client.

Nothing is left out and nothing is slowed down on purpose; it is the plain way to write it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ownview.data.splitting.splits import Split


class MatrixFactorisation(nn.Module):
    """FedMF's client: a user vector and a full item table."""

    def __init__(self, items: int, size: int) -> None:
        super().__init__()
        self.user = nn.Embedding(1, size)
        self.items = nn.Embedding(items, size)

    def forward(self, item: Tensor) -> Tensor:
        """[S] logits."""
        logits: Tensor = (self.items(item) * self.user.weight).sum(-1)
        return logits


class LinearScore(nn.Module):
    """PFedRec's client: a linear score function and a full item table."""

    def __init__(self, items: int, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1)
        self.items = nn.Embedding(items, size)

    def forward(self, item: Tensor) -> Tensor:
        """[S] logits."""
        logits: Tensor = self.score(self.items(item)).squeeze(-1)
        return logits


def one_round(method: str, split: Split, clients: Sequence[int], negatives: int, batch: int, epochs: int) -> int:
    """Train the clients one after the other and average their tables; returns the samples processed."""
    size = 16 if method == "fedmf" else 32
    model: nn.Module = MatrixFactorisation(split.num_items, size)
    if method == "pfedrec":
        model = LinearScore(split.num_items, size)
    table = torch.zeros(split.num_items, size)
    random = np.random.default_rng(0)
    processed = 0
    for client in clients:
        mine = copy.deepcopy(model)
        loader = _loader(split.train.of(client).numpy(), split.num_items, negatives, batch, random)
        optimizers = _optimizers(mine)
        for _ in range(epochs):
            processed += _one_pass(mine, loader, optimizers)
        with torch.no_grad():
            table += mine.state_dict()["items.weight"] / len(clients)
    return processed


def _loader(
    positives: npt.NDArray[np.int64], num_items: int, negatives: int, batch: int, random: np.random.Generator
) -> DataLoader[tuple[Tensor, ...]]:
    free = np.setdiff1d(np.arange(num_items), positives)
    drawn = [random.choice(free, negatives, replace=False) for _ in positives]
    items = torch.from_numpy(np.concatenate([positives, *drawn]))
    labels = torch.zeros(len(items))
    labels[: len(positives)] = 1.0
    return DataLoader(TensorDataset(items, labels), batch_size=batch, shuffle=True)


def _optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    """Adam for everything, or PFedRec's two SGD steps in turn."""
    if not isinstance(model, LinearScore):
        return [torch.optim.Adam(model.parameters(), lr=0.01)]
    table_rate = 0.1 * model.items.num_embeddings * 80
    return [
        torch.optim.SGD(model.score.parameters(), lr=0.1),
        torch.optim.SGD(model.items.parameters(), lr=table_rate),
    ]


def _one_pass(
    model: nn.Module, loader: DataLoader[tuple[Tensor, ...]], optimizers: Sequence[torch.optim.Optimizer]
) -> int:
    criterion, processed = nn.BCEWithLogitsLoss(), 0
    for items, labels in loader:
        for optimizer in optimizers:
            model.zero_grad()
            criterion(model(items), labels).backward()
            optimizer.step()
        processed += len(items)
    return processed
