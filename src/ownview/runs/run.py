"""Carry out an experiment, and look at what came out."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ownview.base.errors import OutputError, SettingError
from ownview.base.trust import trust
from ownview.baselines.central import Central
from ownview.config.differences import differences
from ownview.data.interactions import Interactions
from ownview.evaluation.groups import ActivityRange
from ownview.evaluation.ranking import NONE
from ownview.registry import Model
from ownview.runs.experiment import Experiment
from ownview.runs.finishing import Finishing
from ownview.runs.folder import RunFolder
from ownview.runs.lock import sole_worker
from ownview.runs.provenance import method_fingerprint
from ownview.runs.setup import ExperimentSetup
from ownview.runs.trainers import Trainer
from ownview.runs.training import Training, restore
from ownview.runs.watching import Watch

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

    def loaded(self, data_dir: Path | None = None) -> tuple[ExperimentSetup, Trainer]:
        """The data and the model with its values, on the device that is here."""
        here = replace(self.experiment, device="auto")
        setup = ExperimentSetup.of(here, data=self.data, data_dir=data_dir)
        _require_unchanged(self.folder, here, setup)
        trainer = setup.trainer(here, self.model or here.model(), self.folder.path.parent)
        restore(trainer, self.folder.read_tensors("model")[0], self.folder.path / "model.safetensors")
        return setup, trainer

    def recommend(self, user: Any, k: int = 10, data_dir: Path | None = None) -> list[Recommendation]:
        """The k best items that the user has not interacted with in training or validation.

        Runs on the device that is here, whichever the model was trained on.
        """
        setup, trainer = self.loaded(data_dir)
        names, ranker = setup.split.data, setup.rankers[1]
        position = setup.split.position_in(ranker.question, user)
        users = torch.tensor([position], device=setup.machine.device)
        scorer = trainer.asked(ranker.question)
        best = replace(ranker, users=users).top(scorer, min(k, names.num_items))[0]
        scores = scorer.scores(users, None)[0]
        right = ranker.question.answers(position)
        return [
            Recommendation(names.items[i], names.title(i), float(scores[i]), i in right)
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
    setup = ExperimentSetup.of(experiment, data=data, memory=memory, data_dir=data_dir)
    place = _temporary_folder() if out is None else out
    work = _Work.of(experiment, model, data, setup, place.parent)
    folder = RunFolder.create(place)
    with sole_worker(folder.path):
        folder.write_experiment(work.experiment.to_toml())
        folder.write_provenance(setup.provenance(work.experiment.method))
        return work.finish(work.training(folder, on_round))


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
    experiment = experiment_of(folder)
    for name, here, value in differences(experiment.to_dict(), asked or {}):
        raise OutputError(
            f"{path}: this run has {name}={here!r}, not {value!r}; "
            "resume without that setting, or start a new run with another --out"
        )
    trust(str((asked or {}).get("method", "")))  # the caller names the same file as the folder
    with sole_worker(path):
        if folder.finished:
            folder.drop_tensors("checkpoint")
            return Run(folder, experiment, folder.read_result(), data, model)
        setup = ExperimentSetup.of(experiment, data=data, memory=memory, data_dir=data_dir)
        _require_unchanged(folder, experiment, setup)
        work = _Work.of(experiment, model or experiment.model(), data, setup, path.parent)
        folder.drop_unfinished()
        if not folder.read_provenance():
            folder.write_provenance(setup.provenance(experiment.method))
        training = work.training(folder, on_round)
        training.resume()
        return work.finish(training)


def experiment_of(folder: RunFolder) -> Experiment:
    """What a run was asked to do, as its folder tells."""
    return Experiment.from_toml(folder.read_experiment(), str(folder.path / "experiment.toml"))


def open_run(path: Path, data: Interactions | None = None) -> Run:
    """A finished run from its folder."""
    folder = RunFolder.open(path)
    experiment = experiment_of(folder)
    return Run(folder, experiment, folder.read_result(), data)


@dataclass(frozen=True, eq=False)
class _Work:
    """A model of an experiment in training.

    Args:
        experiment: as it is written down: every setting named, the device and the rounds it comes to.
        model: that is trained.
        data: where it was made in Python.
        setup: of the experiment.
        trainer: of the model.
        watch: clients that are watched.
    """

    experiment: Experiment
    model: Model
    data: Interactions | None
    setup: ExperimentSetup
    trainer: Trainer
    watch: Watch | None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        model: Model,
        data: Interactions | None,
        setup: ExperimentSetup,
        beside: Path,
    ) -> _Work:
        if experiment.inactive:  # a range nobody is in is better said now than after training
            question = setup.rankers[1].question
            counts = setup.split.data.counts if question.strangers is None else question.known.items.lengths.numpy()
            ActivityRange.parse(experiment.inactive).members(counts[question.users])
        at_work = setup.trainer(experiment, model, beside)
        rounds = experiment.rounds_of(model)
        written = replace(experiment.resolved(model), device=str(setup.machine.device), rounds=rounds)
        return cls(written, model, data, setup, at_work, _watch(at_work, experiment))

    def training(self, folder: RunFolder, on_round: OnRound | None) -> Training:
        return Training(
            self.trainer,
            self.experiment.protocol,
            self.setup.rankers,
            self.experiment.rounds,
            folder,
            self.setup.machine.device,
            on_round or (lambda number, metrics: None),
            self.watch,
            self.experiment.measure_every,
        )

    def finish(self, training: Training) -> Run:
        """Train what is left, and look at test."""
        folder = training.folder
        finishing = Finishing(self.experiment, self.setup.split, self.setup.rankers[1], self.trainer, self.watch)
        try:
            finishing.write(training.run(), folder)
        except OutputError as error:
            raise OutputError(f"{error}; then go on with: ownview run --resume {folder.path}") from error
        return Run(folder, self.experiment, folder.read_result(), self.data, self.model)


def _require_unchanged(folder: RunFolder, experiment: Experiment, setup: ExperimentSetup) -> None:
    """Refuse to go on with other data, or another method file, than the run began with."""
    written, method = folder.read_provenance(), experiment.method
    if written.get("method_file_sha256") not in (None, method_fingerprint(method)):
        raise OutputError(f"{folder.path}: the method file {method} has changed since the run began; start a new run")
    known = written.get("data", {}).get("fingerprint")
    if known not in (None, setup.split.data.fingerprint()):
        raise OutputError(
            f"{folder.path}: the data {experiment.data!r} has changed since the run began; "
            "start a new run, or bring the old data back"
        )


def _watch(at_work: Trainer, experiment: Experiment) -> Watch | None:
    if not experiment.watch:
        return None
    if at_work.federation is None:
        method = experiment.method
        raise SettingError(f"setting watch={list(experiment.watch)}: {method} has no clients; nothing to watch")
    return Watch.of(at_work.federation, experiment.watch)


def _temporary_folder() -> Path:
    parent = Path(tempfile.mkdtemp(prefix="ownview-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return parent / "run"
