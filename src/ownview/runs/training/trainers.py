"""Trainers of federated methods, central models and blends, and which of them a model needs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.memory.freed import keep_freed_memory
from ownview.baselines.parts.central import Asked, Central, InEpochs, Lessons, OneShot
from ownview.blends.blend import Blend, Part
from ownview.cluster.federation import ClusterFederation
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.engine.machine import Machine
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Scorer, rankers
from ownview.federation.options import FederationOptions
from ownview.privacy.budget import budget
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.planning import warnings_of
from ownview.privacy.record import headline, unaccounted
from ownview.registry import Model, enough_rounds, parts_of
from ownview.round.conduct import RoundReport
from ownview.round.federation import Federation
from ownview.round.scorers import asked
from ownview.runs.files.folder import RunFolder
from ownview.runs.training.blending import BlendTrainer
from ownview.runs.training.carrying import CarryingTrainer, carrier_of
from ownview.runs.training.trainer import Trainer
from ownview.seam.method import Federated
from ownview.seam.portable import Portable, overruled
from ownview.seam.training import Params


def trainer(
    model: Model,
    split: Split,
    protocol: Protocol,
    options: FederationOptions,
    seed: int,
    machine: Machine,
    beside: Path = Path(),
    noise: NoiseKey | None = None,
) -> Trainer:
    """The trainer of a federated method, or of a central model; of two where validation asks one of its own.

    `beside` is where a blend looks for runs that it names without a whole path; `noise` is what noise under a budget is
    drawn from, a fresh key where there is none.
    """
    noise = noise or NoiseKey.fresh()
    if isinstance(model, Blend):
        if not (protocol.measured or model.weights):
            raise SettingError(
                "blend chooses its weights on validation, and here nothing is held out; take those of a measured one: "
                "--like RUN"
            )
        models = parts_of(model)
        if budget(options.privacy) is not None:
            raise SettingError(
                f"federation setting privacy={options.privacy!r}: every part of a blend would spend the budget anew; "
                "expected one of its parts alone"
            )
        parts = [trainer(part, split, protocol, options, seed, machine) for part in models]
        rounds = [enough_rounds(part) for part in models]
        for place, text in enumerate(model.parts):
            folder = Part.read(text).folder
            if folder:
                parts[place].unpack(_part_run(beside / folder, protocol).read_tensors("model")[0])
                rounds[place] = 0
        asked_first = rankers(protocol, split, seed, machine.device, machine.block_bytes)[0]
        return BlendTrainer(model, parts, rounds, asked_first, machine.memory)
    single: Federated | Central = model

    def of(data: Split, use: str) -> Trainer:
        """With noise of its own: the difference of two models with the same noise is the difference of their data."""
        made = _at_work(single, data, protocol, options, seed, machine, noise.derived(use))
        silent = data.num_new and not single.speaks_of_new
        return CarryingTrainer(made, carrier_of(single, data, machine)) if silent else made

    made = of(split, "main")
    return made if split.earlier is None else TwinTrainer(made, of(split.earlier, "earlier"))


def _part_run(path: Path, protocol: Protocol) -> RunFolder:
    """A run that may be a part: of what is measured one that was measured too, else one that has seen everything."""
    folder = RunFolder.open(path)
    fitted = "no_test_figure" in folder.read_result()
    if fitted and protocol.measured:
        raise SettingError(f"{path}: was trained on everything, held-out items included; a blend takes measured runs")
    if not fitted and not protocol.measured:
        raise SettingError(f"{path}: has items held out; expected a model trained on everything (ownview fit)")
    return folder


def _at_work(
    model: Federated | Central,
    split: Split,
    protocol: Protocol,
    options: FederationOptions,
    seed: int,
    machine: Machine,
    noise: NoiseKey,
) -> Trainer:
    excluded = protocol.training_exclusions(split)
    if isinstance(model, Central) and machine.workers is not None:
        raise SettingError(f"--workers: {model.name} has no clients to share out; run it without workers")
    if isinstance(model, Central) and split.test.strangers is not None:
        _require_by_history(model, f"under protocol {protocol.name} ")
    if isinstance(model, InEpochs):
        return EpochTrainer(model, split, excluded, seed, machine)
    if isinstance(model, OneShot):
        return OneShotTrainer(model, split, excluded, seed, machine)
    if isinstance(model, Central):
        raise TypeError(f"{type(model).__name__} is neither OneShot nor InEpochs")
    kind = Federation if machine.workers is None else ClusterFederation
    return FederatedTrainer(kind(model, split, excluded, options, seed, machine, noise))


def _require_by_history(model: Central, where: str = "") -> None:
    if not model.by_history:
        raise SettingError(
            f"{model.name} learns values for every user and has none for users that never took part; {where}"
            "take a model that scores by history, such as ease, or a federated method"
        )


class FederatedTrainer:
    """A federation and the scores of its clients."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation

    def round(self, number: int) -> RoundReport:
        """Train one round."""
        return self.federation.round(number)

    def asked(self, question: Question) -> Scorer:
        """Scores by the users' clients, or by clients of users who come for the first time."""
        return asked(self.federation, question)

    def notes(self) -> tuple[str, ...]:
        """Its protection, and the method's warnings."""
        world = self.federation.world
        plan = world.protection
        private = unaccounted(self.federation.terms.noise_setting)
        if plan is not None:
            private = (headline(plan), *warnings_of(plan, world.num_clients))
        masked = self.federation.terms.masked
        hidden = () if masked is None else (masked.sentence(),)
        return (*private, *hidden, *self.federation.method.notes(world))

    def portable(self) -> Portable:
        """The portable form, from a new client's download."""
        if refusal := overruled(type(self.federation.method)):
            return refusal
        no_client = torch.arange(0, device=self.federation.machine.device)
        received = {name: value.cpu() for name, value in self.federation.newest(no_client).values.items()}
        return self.federation.method.portable(received, self.federation.world)

    def pack(self) -> dict[str, Tensor]:
        """Clients' and server's values."""
        return self.federation.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore clients and server."""
        self.federation.unpack(packed)


class TwinTrainer:
    """Two models of the same settings that train side by side, one on less.

    Args:
        main: is tested.
        earlier: answers questions that are for it (`Question.earlier`) alone: validation, which chooses the round for
            both.
    """

    def __init__(self, main: Trainer, earlier: Trainer) -> None:
        self.main, self.earlier = main, earlier

    @property
    def federation(self) -> Federation | None:
        """Federation of the model that is tested."""
        return self.main.federation

    def round(self, number: int) -> RoundReport:
        """Train one round of both; the report is that of the model that is tested, the seconds those of both."""
        earlier, report = self.earlier.round(number), self.main.round(number)
        seconds = {part: value + earlier.seconds.get(part, 0.0) for part, value in report.seconds.items()}
        return replace(report, seconds=seconds)

    def asked(self, question: Question) -> Scorer:
        """Scores by the model that the question is for."""
        return (self.earlier if question.earlier else self.main).asked(question)

    def notes(self) -> tuple[str, ...]:
        """Those of the model that is tested."""
        return self.main.notes()

    def portable(self) -> Portable:
        """That of the model that is tested."""
        return self.main.portable()

    def pack(self) -> dict[str, Tensor]:
        """Everything of both."""
        return self.main.pack() | {f"earlier.{name}": value for name, value in self.earlier.pack().items()}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore both."""
        earlier = {name: value for name, value in packed.items() if name.startswith("earlier.")}
        self.main.unpack({name: value for name, value in packed.items() if name not in earlier})
        self.earlier.unpack({name.removeprefix("earlier."): value for name, value in earlier.items()})


class CentralTrainer(ABC):
    """A central model and its values."""

    def __init__(self, model: Central, split: Split, machine: Machine) -> None:
        model.require(split)
        needed = model.standing_bytes(split.num_users, split.num_items)
        advice = "raise --memory" + (" or lower embedding_size" if "embedding_size" in model.values() else "")
        machine.require(needed, f"{model.name}'s standing values", advice)
        self.central, self.split, self.device = model, split, machine.device
        self.values: Params = {}
        self.learned: Params = {}

    @property
    def federation(self) -> None:
        """There is none."""
        return None

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
        return RoundReport(number, self.split.num_users, loss, {"train": time.perf_counter() - start})

    def asked(self, question: Question) -> Scorer:
        """Scores by what was learnt and what is known."""
        if question.strangers is not None:
            _require_by_history(self.central)
        if not self.learned:  # worked out once for all blocks of users that are ranked after a round
            self.learned = self.predicting()
        same = question.strangers is None and question.known.items.same_items(self.split.train)
        return CentralScorer(self.central, self.learned, question.known.to(self.device), as_trained=same)

    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    def portable(self) -> Portable:
        """Portable form of the model with its learnt values."""
        if refusal := overruled(type(self.central)):
            return refusal
        return self.central.portable({name: value.cpu() for name, value in self.predicting().items()})

    def pack(self) -> dict[str, Tensor]:
        """What was learnt, and what an optimiser remembers."""
        return dict(self.values)

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        self.values = {name: torch.as_tensor(value).to(self.device) for name, value in packed.items()}
        self.learned = {}


class CentralScorer:
    """Scores by a central model.

    Args:
        model: its settings.
        learned: what it learnt.
        known: of every user.
        as_trained: whether that is what it was trained on.
    """

    def __init__(self, model: Central, learned: Params, known: Timeline, *, as_trained: bool) -> None:
        self.model, self.learned, self.known, self.as_trained = model, learned, known, as_trained

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` for `users`, of all items where `items` is None."""
        every = self.model.scores(self.learned, Asked(users, self.known, self.as_trained))
        return every if items is None else every.gather(1, items)


class OneShotTrainer(CentralTrainer):
    """A model that is fitted in its only round."""

    def __init__(self, model: OneShot, split: Split, excluded: Ragged, seed: int, machine: Machine) -> None:
        super().__init__(model, split, machine)
        self.model, self.excluded, self.seed = model, excluded, seed

    def train(self, number: int) -> None:
        """Fit."""
        self.unpack(self.model.fit(self.split, self.excluded, self.seed))


class EpochTrainer(CentralTrainer):
    """A model that trains an epoch a round."""

    def __init__(self, model: InEpochs, split: Split, excluded: Ragged, seed: int, machine: Machine) -> None:
        super().__init__(model, split, machine)
        self.model, self.lessons = model, Lessons.of(split, excluded, seed, machine.device)
        keep_freed_memory()
        self.unpack(model.start(self.lessons))

    def train(self, number: int) -> float:
        """One epoch."""
        return self.model.epoch(self.values, self.lessons, number)

    def predicting(self) -> Params:
        """What the model predicts with, made of the trained values."""
        return self.model.learned(self.values, self.lessons)
