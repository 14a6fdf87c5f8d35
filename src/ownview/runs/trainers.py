"""One face for everything that can be trained in rounds, scored, saved and restored."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol as Interface

import torch
from torch import Tensor

from ownview.baselines.central import Central, InEpochs, Lessons, OneShot
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.federation.round import Federation, RoundReport
from ownview.federation.scoring import scorer_of
from ownview.registry import Model
from ownview.seam.training import Params


class Trainer(Interface):
    """A model at work."""

    def round(self, number: int) -> RoundReport:
        """Train one round."""

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` for `users`, of all items where `items` is None."""

    def pack(self) -> dict[str, Tensor]:
        """Everything needed to go on, and to predict."""

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""


def trainer(
    model: Model, split: Split, protocol: Protocol, options: FederationOptions, seed: int, machine: Machine
) -> Trainer:
    """The trainer of a federated method, or of a central model."""
    excluded = protocol.training_exclusions(split)
    if isinstance(model, InEpochs):
        return EpochTrainer(model, split, excluded, seed, machine)
    if isinstance(model, OneShot):
        return OneShotTrainer(model, split, excluded, seed, machine)
    if isinstance(model, Central):
        raise TypeError(f"{type(model).__name__} is neither OneShot nor InEpochs")
    return FederatedTrainer(Federation(model, split, excluded, options, seed, machine))


class FederatedTrainer:
    """A federation and the scores of its clients."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.scorer = scorer_of(federation)

    def round(self, number: int) -> RoundReport:
        """Train one round."""
        return self.federation.round(number)

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores by the users' clients."""
        return self.scorer.scores(users, items)

    def pack(self) -> dict[str, Tensor]:
        """Clients' and server's values."""
        return self.federation.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore clients and server."""
        self.federation.unpack(packed)


class CentralTrainer(ABC):
    """A central model and its values."""

    def __init__(self, model: Central, split: Split, machine: Machine) -> None:
        needed = model.standing_bytes(split.num_users, split.num_items)
        advice = "raise --memory" + (" or lower embedding_size" if "embedding_size" in model.values() else "")
        machine.require(needed, f"{model.name}'s standing values", advice)
        self.central, self.num_users, self.device = model, split.num_users, machine.device
        self.values: Params = {}
        self.learned: Params = {}

    @abstractmethod
    def train(self, number: int) -> float | None:
        """Train one round; the mean loss, where there is one."""

    def predicting(self) -> Params:
        """What the model scores with."""
        return self.values

    def round(self, number: int) -> RoundReport:
        """Train one round."""
        start = time.perf_counter()
        loss = self.train(number)
        self.learned = {}
        return RoundReport(number, self.num_users, loss, {"train": time.perf_counter() - start})

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores."""
        if not self.learned:  # worked out once for all blocks of users that are ranked after a round
            self.learned = self.predicting()
        every = self.central.scores(self.learned, users)
        return every if items is None else every.gather(1, items)

    def pack(self) -> dict[str, Tensor]:
        """What was learnt, and what an optimiser remembers."""
        return dict(self.values)

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        self.values = {name: torch.as_tensor(value).to(self.device) for name, value in packed.items()}
        self.learned = {}


class OneShotTrainer(CentralTrainer):
    """A model that is fitted in its only round."""

    def __init__(self, model: OneShot, split: Split, excluded: Ragged, seed: int, machine: Machine) -> None:
        super().__init__(model, split, machine)
        self.model, self.split, self.excluded, self.seed = model, split, excluded, seed

    def train(self, number: int) -> None:
        """Fit."""
        self.unpack(self.model.fit(self.split, self.excluded, self.seed))


class EpochTrainer(CentralTrainer):
    """A model that trains an epoch a round."""

    def __init__(self, model: InEpochs, split: Split, excluded: Ragged, seed: int, machine: Machine) -> None:
        super().__init__(model, split, machine)
        self.model, self.lessons = model, Lessons.of(split, excluded, seed, machine.device)
        self.unpack(model.start(self.lessons))

    def train(self, number: int) -> float:
        """One epoch."""
        return self.model.epoch(self.values, self.lessons, number)

    def predicting(self) -> Params:
        """What the values come to."""
        return self.model.learned(self.values, self.lessons)
