"""Carry out an experiment, and look at what came out."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ownview.base.errors import OutputError, SettingError
from ownview.baselines.central import Central
from ownview.data.catalog import load, min_interactions
from ownview.data.interactions import IntArray, Interactions
from ownview.data.splits import NONE, Split
from ownview.engine.machine import Machine, machine
from ownview.evaluation.groups import ActivityRange, by_activity, summary
from ownview.evaluation.metrics import HEADLINE, Standing, coverage, gini, means, per_user
from ownview.evaluation.ranking import Ranker, rankers
from ownview.evaluation.statistics import bootstrap_interval
from ownview.federation.cost import Cost, cost_of
from ownview.federation.gathering import GatheringFederation
from ownview.federation.gathering_cost import gathering_cost
from ownview.registry import Model
from ownview.runs.experiment import Experiment
from ownview.runs.folder import RunFolder
from ownview.runs.lock import sole_worker
from ownview.runs.provenance import method_fingerprint, provenance
from ownview.runs.recommended import recommended
from ownview.runs.trainers import FederatedTrainer, Trainer, trainer
from ownview.runs.training import Best, Training
from ownview.runs.watching import Watch

_TRAFFIC = ("bytes_down_per_client", "bytes_up_per_client", "bytes_dense_per_client")

OnRound = Callable[[int, dict[str, float]], None]


class Recommendation(NamedTuple):
    """One recommended item. `held_out`: the user did interact with it, and the model was not told."""

    item: Any
    title: str
    score: float
    held_out: bool


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run."""

    folder: RunFolder
    experiment: Experiment
    result: Mapping[str, Any]
    data: Interactions | None = None
    model: Model | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics at the chosen round. They belong to the protocol that `result` names."""
        return dict(self.result["test"])

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """What was noted after every round."""
        return self.folder.read_rounds()

    def recommend(self, user: Any, k: int = 10, data_dir: Path | None = None) -> list[Recommendation]:
        """The k best items that the user has not interacted with in training or validation.

        Runs on the device that is here, whichever the model was trained on.
        """
        here = replace(self.experiment, device="auto")
        bench = _Bench.of(here, self.model or here.model(), self.data, data_dir=data_dir)
        bench.check_unchanged(self.folder)
        tensors, _ = self.folder.read_tensors("model")
        bench.trainer.unpack(tensors)
        position = bench.split.data.position_of_user(user)
        users = torch.tensor([position], device=bench.machine.device)
        ranker = replace(bench.rankers[1], users=users)
        best = ranker.top(bench.trainer, k)[0]
        scores = bench.trainer.scores(users, None)[0]
        names = bench.split.data
        return [
            Recommendation(names.items[i], names.title(i), float(scores[i]), i == int(bench.split.test[position]))
            for i in best.tolist()
            if i != NONE
        ]


def run(
    experiment: Experiment,
    *,
    model: Model | None = None,
    data: Interactions | None = None,
    out: Path | None = None,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_round: OnRound | None = None,
) -> Run:
    """Carry out an experiment from the start.

    Args:
        experiment: what to do.
        model: where the model was made in Python and has no registered name.
        data: where the data was made in Python.
        out: a folder that does not exist yet; without it a temporary one that goes with the process.
        memory: what training may take, such as 4GB.
        data_dir: where datasets are.
        on_round: told after every round.
    """
    model = model or experiment.model()
    if isinstance(model, Central):
        model.require_packages()
    bench = _Bench.of(experiment, model, data, memory, data_dir)
    folder = RunFolder.create(_temporary_folder() if out is None else out)
    with sole_worker(folder.path):
        folder.write_experiment(bench.experiment.to_toml())
        folder.write_provenance(provenance(bench.split, bench.machine.device, bench.experiment.method))
        return bench.finish(bench.training(folder, on_round))


def resume(
    path: Path,
    *,
    model: Model | None = None,
    data: Interactions | None = None,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_round: OnRound | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Run:
    """Finish an interrupted run; the result is the one an uninterrupted run has.

    Args:
        path: the run's folder.
        model: as in `run`.
        data: as in `run`.
        memory: as in `run`; it may differ from the first time.
        data_dir: as in `run`.
        on_round: as in `run`.
        asked: settings the caller believes the run has, as `Experiment.to_dict` writes them; others are refused.
    """
    folder = RunFolder.open(path)
    experiment = Experiment.from_toml(folder.read_experiment(), str(path / "experiment.toml"))
    _require_same(experiment.to_dict(), asked or {}, path)
    with sole_worker(path):
        if folder.finished:
            folder.drop_tensors("checkpoint")
            return Run(folder, experiment, folder.read_result(), data, model)
        bench = _Bench.of(experiment, model or experiment.model(), data, memory, data_dir)
        bench.check_unchanged(folder)
        folder.drop_unfinished()
        if not folder.read_provenance():
            folder.write_provenance(provenance(bench.split, bench.machine.device, bench.experiment.method))
        training = bench.training(folder, on_round)
        training.resume()
        return bench.finish(training)


def open_run(path: Path, data: Interactions | None = None) -> Run:
    """A finished run from its folder."""
    folder = RunFolder.open(path)
    experiment = Experiment.from_toml(folder.read_experiment(), str(path / "experiment.toml"))
    return Run(folder, experiment, folder.read_result(), data)


@dataclass(frozen=True, eq=False)
class _Bench:
    """Everything an experiment needs, set up."""

    experiment: Experiment
    machine: Machine
    split: Split
    rankers: tuple[Ranker, Ranker]
    trainer: Trainer
    rounds: int
    data: Interactions | None
    model: Model
    watch: Watch | None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        model: Model,
        data: Interactions | None,
        memory: str = "auto",
        data_dir: Path | None = None,
    ) -> _Bench:
        place = machine(experiment.device, memory, experiment.engine)
        source = data if data is not None else load(experiment.data, data_dir=data_dir, columns=experiment.columns)
        split = experiment.protocol.prepare(source, min_interactions(experiment.data))
        questions = rankers(experiment.protocol, split, experiment.seed, place.device, place.block_bytes)
        if experiment.inactive:  # a range nobody is in is better said now than after training
            ActivityRange.parse(experiment.inactive).members(split.data.counts[questions[1].users.cpu().numpy()])
        at_work = trainer(model, split, experiment.protocol, experiment.federation, experiment.seed, place)
        watch = _watch(at_work, experiment)
        rounds = experiment.rounds_of(model)
        written = replace(experiment.resolved(model), device=str(place.device), rounds=rounds)
        return cls(written, place, split, questions, at_work, rounds, data, model, watch)

    def training(self, folder: RunFolder, on_round: OnRound | None) -> Training:
        return Training(
            self.trainer,
            self.experiment.protocol,
            self.rankers,
            self.rounds,
            folder,
            self.machine.device,
            on_round or (lambda number, metrics: None),
            self.watch,
        )

    def check_unchanged(self, folder: RunFolder) -> None:
        """Refuse to go on with other data, or another method file, than the run began with."""
        written = folder.read_provenance()
        method = self.experiment.method
        if written.get("method_file_sha256") not in (None, method_fingerprint(method)):
            raise OutputError(
                f"{folder.path}: the method file {method} has changed since the run began; start a new run"
            )
        known = written.get("data", {}).get("fingerprint")
        if known not in (None, self.split.data.fingerprint()):
            raise OutputError(
                f"{folder.path}: the data {self.experiment.data!r} has changed since the run began; "
                "start a new run, or bring the old data back"
            )

    def finish(self, training: Training) -> Run:
        """Train what is left, restore the chosen round, and look at test."""
        try:
            return self._finish(training)
        except OutputError as error:
            raise OutputError(f"{error}; then go on with: ownview run --resume {training.folder.path}") from error

    def _finish(self, training: Training) -> Run:
        best = training.run()
        self.trainer.unpack(best.packed)
        folder = training.folder
        standing = self.rankers[1].rank(self.trainer)
        folder.write_tensors("model", best.packed, {"round": best.round})
        folder.write_users(self._users(standing))
        lists = self.rankers[1].top(self.trainer, 10)
        watched = () if self.watch is None else self.watch.positions
        folder.write_tensors("recommended", *recommended(self.split, standing.users, lists, watched))
        if self.watch is not None:
            folder.write_tensors("watched", self.watch.tensors(), {"round": best.round, **self.watch.about()})
        cost = self._cost(best, folder)
        if cost is not None:
            folder.write_cost(cost.to_dict())
        folder.write_result(self._result(best, standing, lists, folder, cost))
        folder.drop_tensors("checkpoint")
        return Run(folder, self.experiment, folder.read_result(), self.data, self.model)

    def _users(self, standing: Standing) -> dict[str, list[Any]]:
        trained = self.split.train.lengths.numpy()
        columns: dict[str, list[Any]] = {
            "user": self.split.data.users[standing.users].tolist(),
            "training_interactions": trained[standing.users].tolist(),
            "held_out": self.split.data.items[self.split.test[standing.users]].tolist(),
            "better": standing.better.tolist(),
            "tied": standing.tied.tolist(),
            "candidates": standing.candidates.tolist(),
        }
        values = per_user(standing, self.experiment.protocol.cutoffs)
        return columns | {name: np.round(column, 12).tolist() for name, column in values.items()}

    def _cost(self, best: Best, folder: RunFolder) -> Cost | None:
        """None for a model that is not federated."""
        if isinstance(self.trainer, GatheringFederation):
            return gathering_cost(self.trainer, best.round, folder.read_rounds())
        if not isinstance(self.trainer, FederatedTrainer):
            return None
        return cost_of(self.trainer.federation, best.round, folder.read_rounds())

    def _by_activity(self, standing: Standing) -> dict[str, Any]:
        interactions = self.split.data.counts[standing.users]
        values = per_user(standing, self.experiment.protocol.cutoffs)
        found: dict[str, Any] = {"groups": by_activity(interactions, values)}
        if self.experiment.inactive:
            asked = ActivityRange.parse(self.experiment.inactive)
            found["inactive"] = summary(f"inactive {asked}", asked.members(interactions), interactions, values)
        return found

    def _result(
        self, best: Best, standing: Standing, lists: IntArray, folder: RunFolder, cost: Cost | None
    ) -> dict[str, Any]:
        protocol = self.experiment.protocol
        lines = folder.read_rounds()
        values = per_user(standing, protocol.cutoffs)
        return {
            "method": self.experiment.label(),
            "data": self.split.data.name,
            "protocol": protocol.name,
            "seed": self.experiment.seed,
            "settings": self.experiment.to_dict()["settings"],
            "rounds": self.rounds,
            "chosen_round": best.round,
            "chosen_on": protocol.selection,
            "test": {
                **means(standing, protocol.cutoffs),
                "coverage@10": coverage(lists, self.split.num_items),
                "Gini@10": gini(lists, self.split.num_items),
            },
            "interval_95": {name: bootstrap_interval(values[name]) for name in HEADLINE},
            **self._by_activity(standing),
            "validation" if protocol.selection != "test" else "test_at_choice": best.metrics,
            "users_ranked": len(standing.users),
            "tied_users": standing.tied_share,
            "notes": list(self.split.notes),
            "seconds": round(sum(sum(line["seconds"].values()) for line in lines), 3),
            "peak_memory_bytes": max(line["peak_memory_bytes"] for line in lines),
            **{name: _per_client(lines, name) for name in _TRAFFIC},
            **({} if cost is None else {"cost": cost.summary()}),
        }


def _per_client(lines: list[dict[str, Any]], name: str) -> int:
    """The mean over all rounds and their clients, rounded."""
    clients = sum(int(line["clients"]) for line in lines)
    return round(sum(int(line[name]) * int(line["clients"]) for line in lines) / max(clients, 1))


def _watch(at_work: Trainer, experiment: Experiment) -> Watch | None:
    if not experiment.watch:
        return None
    if not isinstance(at_work, FederatedTrainer):
        why = "sends sums and trains no shared table" if isinstance(at_work, GatheringFederation) else "has no clients"
        raise SettingError(f"setting watch={list(experiment.watch)}: {experiment.method} {why}; nothing to watch")
    return Watch.of(at_work.federation, experiment.watch)


def _require_same(have: Mapping[str, Any], asked: Mapping[str, Any], path: Path, where: str = "") -> None:
    for name, value in asked.items():
        if isinstance(value, Mapping):
            _require_same(have.get(name, {}), value, path, f"{where}{name}.")
        elif have.get(name) != value:
            raise OutputError(
                f"{path}: this run has {where}{name}={have.get(name)!r}, not {value!r}; "
                "resume without that setting, or start a new run with another --out"
            )


def _temporary_folder() -> Path:
    parent = Path(tempfile.mkdtemp(prefix="ownview-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return parent / "run"
