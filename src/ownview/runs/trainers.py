"""One face for everything that can be trained in rounds, scored, saved and restored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol as Interface

import torch
from torch import Tensor

from ownview.baselines.central import Central
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.federation import Federation, RoundReport
from ownview.engine.gathering import GatheringFederation
from ownview.engine.machine import Machine
from ownview.engine.options import FederationOptions
from ownview.engine.scoring import ClientScorer
from ownview.evaluation.protocol import Protocol
from ownview.gathering import Gathering
from ownview.registry import Model
from ownview.types import Params


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
    """The trainer of a federated method, of one that gathers, or of a central model."""
    excluded = protocol.training_exclusions(split)
    if isinstance(model, Central):
        return CentralTrainer(model, split, excluded, seed, machine)
    if isinstance(model, Gathering):
        return GatheringFederation(model, split, excluded, options, seed, machine)
    return FederatedTrainer(Federation(model, split, excluded, options, seed, machine))


class FederatedTrainer:
    """A federation and the scores of its clients."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.scorer = ClientScorer(federation.method, federation.state, federation.machine)

    def round(self, number: int) -> RoundReport:
        """Train one round."""
        return self.federation.round(number)

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores by the users' clients."""
        return self.scorer.scores(users, items)

    def pack(self) -> dict[str, Tensor]:
        """Clients' and server's values."""
        return self.federation.state.pack() | self.federation.server.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore clients and server."""
        self.federation.state.unpack(packed)
        self.federation.server.unpack(packed)


class CentralTrainer:
    """A central model, fitted in its only round."""

    def __init__(self, model: Central, split: Split, excluded: Ragged, seed: int, machine: Machine) -> None:
        needed = model.standing_bytes(split.num_users, split.num_items)
        machine.require(needed, f"{model.name}'s standing values")
        self.model, self.split, self.excluded, self.seed, self.machine = model, split, excluded, seed, machine
        self.learned: Params = {}

    def round(self, number: int) -> RoundReport:
        """Fit."""
        start = time.perf_counter()
        learned = self.model.fit(self.split, self.excluded, self.seed)
        self.learned = {name: value.to(self.machine.device) for name, value in learned.items()}
        return RoundReport(number, self.split.num_users, None, {"train": time.perf_counter() - start})

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores."""
        every = self.model.scores(self.learned, users)
        return every if items is None else every.gather(1, items)

    def pack(self) -> dict[str, Tensor]:
        """What was learnt."""
        return dict(self.learned)

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what was learnt."""
        self.learned = {name: torch.as_tensor(value).to(self.machine.device) for name, value in packed.items()}
