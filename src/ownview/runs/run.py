"""Run or resume an experiment; open a finished run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ownview.base.arguments import kinds_checked
from ownview.base.errors import DeviceError, OutputError, SettingError, UnwrittenError
from ownview.base.files import is_file, temporary_folder
from ownview.base.lock import sole_worker
from ownview.baselines.parts.central import Central
from ownview.config.differences import differences
from ownview.data.interactions import Interactions
from ownview.data.persons import Newcomer, newcomer
from ownview.data.unseen_items import KEPT
from ownview.engine.machine import Workers
from ownview.evaluation.groups import ActivityRange
from ownview.evaluation.ranking import OnUsers
from ownview.privacy.budget import budget
from ownview.privacy.entropy import NoiseKey
from ownview.registry import Model
from ownview.runs.charging import charge_fit
from ownview.runs.experiment import Experiment
from ownview.runs.files.data_copy import read_histories, write_histories
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.manifest import MANIFEST, keep_sources, write_manifest
from ownview.runs.files.sources import require_unchanged
from ownview.runs.files.tensor_files import as_written
from ownview.runs.files.versions import model_folder, reading
from ownview.runs.loggers import Logger
from ownview.runs.recommending import Recommendation, Recommender
from ownview.runs.smaller_forms import forms_of
from ownview.runs.summaries.frames import frame_of_lists, frame_of_rounds
from ownview.runs.summaries.summary import as_html, in_words
from ownview.runs.training.finishing import Finishing
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.training_rounds import Training
from ownview.runs.training.watching import Watch

if TYPE_CHECKING:
    import polars as pl

OnRound = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run."""

    folder: RunFolder
    experiment: Experiment
    result: Mapping[str, Any]
    data: Interactions | None = None
    model: Model | None = None
    _kept: dict[Path | None, Recommender] = field(default_factory=dict)
    _handed_on: dict[str, Tensor] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether there are figures: none where everything was trained on."""
        return "no_test_figure" not in self.result

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics at the chosen round. They belong to the protocol that `result` names.

        Raises:
            OutputError: the model was trained on everything, and nothing is left to measure it on.
        """
        if not self.measured:
            raise OutputError(f"{self.folder.path}: {self.result['no_test_figure']}")
        return dict(self.result["test"])

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """What was noted after every round."""
        return self.folder.read_rounds()

    @property
    def new_items(self) -> Path | None:
        """The file of the model's own items without interactions; None where it has none."""
        kept = model_folder(self.folder.path) / KEPT
        return kept if kept.is_file() else None

    def to_frame(self) -> pl.DataFrame:
        """What was noted after every round, as a polars frame."""
        return frame_of_rounds(self.rounds)

    @kinds_checked()
    def recommend(
        self, user: Any, k: int = 10, data_dir: Path | None = None, new_items: Path | None = None
    ) -> list[Recommendation]:
        """The k best items for one user, or for a new user.

        Args:
            user: an id, whose items in training and validation are not recommended; or what `newcomer` returned.
            k: how many.
            data_dir: where datasets are.
            new_items: a file of items; those without interactions are offered too, by their text. The model's own
                (`ownview update MODEL --items FILE`) where None.
        """
        _require_some(k)
        at_hand = self.loaded(data_dir, new_items or self.new_items)
        return at_hand.newcomer(user, k) if isinstance(user, Newcomer) else at_hand.one(user, k)

    @kinds_checked()
    def recommend_many(
        self, users: Sequence[Any] | None = None, k: int = 10, data_dir: Path | None = None,
        new_items: Path | None = None, on_users: OnUsers | None = None,
    ) -> pl.DataFrame:  # fmt: skip
        """The same for many users, everybody where None: columns user, rank, item, title where there are any, score.

        `on_users` is called now and then with how many have their lists.
        """
        _require_some(k)
        at_hand = self.loaded(data_dir, new_items or self.new_items)
        return frame_of_lists(at_hand, at_hand.lists(users, k, on_users))

    @kinds_checked()
    def newcomer(self, history: str | Path | Sequence[object], data_dir: Path | None = None) -> Newcomer:
        """A new user, for `recommend`; shows which items were matched.

        Args:
            history: titles or ids, oldest first; as one text they are parted by semicolons. A path is a file with a
                column item or title and, if need be, timestamp.
            data_dir: where datasets are.
        """
        return newcomer(history, self.loaded(data_dir).names)

    def loaded(self, data_dir: Path | None = None, new_items: Path | None = None) -> Recommender:
        """The model at hand; read when it is first asked. With `new_items` it offers those of the file too."""
        if data_dir not in self._kept:
            asked = self.folder, self.experiment, self.model, self.data, data_dir
            self._kept[data_dir] = Recommender.of(*asked, dict(self._handed_on) or None)
            self._handed_on.clear()  # the model at hand has them now
        return self._kept[data_dir] if new_items is None else self._kept[data_dir].offering(new_items)

    def __repr__(self) -> str:
        return f"Run({in_words(self.result)}; {self.folder.path})"

    def _repr_html_(self) -> str:
        return as_html(self.result, str(self.folder.path))


def _require_some(k: int) -> None:
    if k < 1:
        raise SettingError(f"k={k}: expected a number of items, at least 1")


def run(
    experiment: Experiment,
    *,
    model: Model | None = None,
    data: Interactions | None = None,
    out: Path | None = None,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_round: OnRound | None = None,
    loggers: Sequence[Logger] = (),
    workers: Workers | None = None,
    total: float | None = None,
    hand_on: bool = False,
) -> Run:
    """Carry out an experiment from the start.

    Args:
        experiment: what to do.
        model: where the model was made in Python and has no registered name.
        data: where the data was made in Python.
        out: a folder that does not exist yet; without it a temporary one that goes with the process.
        memory: what training may take, such as 4GB.
        data_dir: where datasets are.
        on_round: called after every round.
        loggers: called when it begins, after every round, and when it has finished.
        workers: processes that share the clients; the result is the same to rounding.
        total: epsilon that all releases of these people together may reach from now on, where the model is trained on
            everything under a budget; None for what holds for them (`ownview.releases`).
        hand_on: whether the run holds its model's values until the model is asked, which reads and checks its file
            otherwise. Not where several runs are made: models may be large.
    """
    model = model or experiment.model()
    if isinstance(model, Central):
        model.require_packages()
    setup = ExperimentSetup.of(experiment, data=data, memory=memory, data_dir=data_dir, workers=workers)
    place = temporary_folder() if out is None else out
    noise = NoiseKey.fresh()
    begin = partial(_Work.of, data=data, setup=setup, beside=place.parent, noise=noise)
    work = _fitting(begin, experiment, model)
    folder = RunFolder.create(place)
    with sole_worker(folder.path):
        folder.require_not_begun()
        try:
            work.charge(noise, place, total)
        except BaseException:
            folder.drop_if_not_begun()
            raise
        work.begin(folder)
        if work.hides:
            folder.write_noise_key(noise)
        training = work.training(folder, on_round, loggers)
        made = work.finish(training)
        return replace(made, _handed_on=as_written(training.best.packed)) if hand_on else made


@kinds_checked()
def resume(
    path: str | Path,
    *,
    model: Model | None = None,
    data: Interactions | None = None,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_round: OnRound | None = None,
    asked: Mapping[str, Any] | None = None,
    loggers: Sequence[Logger] = (),
    workers: Workers | None = None,
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
        loggers: as in `run`.
        workers: as in `run`; there may be more or fewer than the first time.
    """
    path = Path(path)
    folder = RunFolder.open(path)
    experiment = experiment_of(folder)
    for name, here, value in differences(experiment.to_dict(), asked or {}):
        raise OutputError(
            f"{path}: this run has {name}={here!r}, not {value!r}; "
            "resume without that setting, or start a new run with another --out"
        )
    path = folder.path
    with sole_worker(path):
        data = read_histories(path) if data is None else data
        if folder.finished:
            if "method" in (asked or {}):  # a result is asked for, and not merely this folder
                require_unchanged(folder, experiment)
            folder.drop_unfinished()
            if not is_file(path / MANIFEST):  # killed right after the result was written
                write_manifest(path)
            folder.drop_checkpoint()
            folder.drop_noise_key()
            return Run(folder, experiment, folder.read_result(), data, model)
        setup = ExperimentSetup.of(experiment, data=data, memory=memory, data_dir=data_dir, workers=workers)
        setup.require_same(folder, experiment)
        noise = folder.read_noise_key() or NoiseKey.fresh()
        work = _Work.of(experiment, model or experiment.model(), data, setup, path.parent, noise)
        work.charge(noise, path)
        folder.drop_unfinished()
        if not folder.read_provenance():
            folder.write_provenance(setup.provenance(experiment))
        if work.hides:
            folder.write_noise_key(noise)
        training = work.training(folder, on_round, loggers)
        training.resume()
        return work.finish(training)


def experiment_of(folder: RunFolder) -> Experiment:
    """What a run was asked to do, as its folder says."""
    return Experiment.from_toml(folder.read_experiment(), str(folder.path / "experiment.toml"))


@kinds_checked()
def open_run(path: str | Path, data: Interactions | None = None) -> Run:
    """A finished run from its folder; `data` where it was made in Python and the folder has no copy."""
    return reading(Path(path), lambda place: _opened(RunFolder.open(place), data))


def _opened(folder: RunFolder, data: Interactions | None) -> Run:
    data = read_histories(folder.path) if data is None else data
    return Run(folder, experiment_of(folder), folder.read_result(), data)


@dataclass(frozen=True, eq=False)
class _Work:
    """A model of an experiment in training.

    Args:
        experiment: complete, as its file has it: every setting, the device and the number of rounds.
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
        noise: NoiseKey,
    ) -> _Work:
        if experiment.inactive:  # an empty range is an error before training, not after
            question = setup.rankers[1].question
            counts = setup.split.data.counts if question.strangers is None else question.known.items.lengths.numpy()
            ActivityRange.parse(experiment.inactive).members(counts[question.users])
        at_work = setup.trainer(experiment, model, beside, noise)
        rounds = experiment.rounds_of(model)
        written = replace(experiment.resolved(model), device=str(setup.machine.device), rounds=rounds)
        return cls(written, model, data, setup, at_work, _watch(at_work, experiment))

    def begin(self, folder: RunFolder) -> None:
        """Write what decides the result; a model to be used keeps its data, and no path that another machine lacks."""
        if not self.experiment.protocol.measured:
            write_histories(folder.path, self.setup.data)
        keep_sources(self.experiment, folder.path)
        folder.write_experiment(self.experiment.to_toml(folder.path))
        folder.write_provenance(self.setup.provenance(self.experiment))

    @property
    def hides(self) -> bool:
        """Whether noise is drawn from a secret key."""
        asked = budget(self.experiment.federation.privacy)
        return asked is not None and not asked.seeded

    def charge(self, noise: NoiseKey, folder: Path, total: float | None = None) -> None:
        """Write a release under a budget down before anything of it is made."""
        data = self.setup.split.data
        charge_fit(self.experiment, self.trainer.federation, noise.name, data, folder, total)

    def training(self, folder: RunFolder, on_round: OnRound | None, loggers: Sequence[Logger]) -> Training:
        for logger in loggers:
            logger.begin(self.experiment.to_dict())
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
            loggers,
        )

    def finish(self, training: Training) -> Run:
        """Train what is left, and look at test."""
        folder = training.folder
        finishing = Finishing(self.experiment, self.setup.split, self.setup.rankers[1], self.trainer, self.watch)
        try:
            finishing.write(training.run(), folder)
        except UnwrittenError as error:
            raise UnwrittenError(error.reason, folder.go_on) from error
        result = folder.read_result()
        for logger in training.loggers:
            logger.end(result)
        return Run(folder, self.experiment, result, self.data, self.model)


def _fitting(begin: Callable[[Experiment, Model], _Work], experiment: Experiment, model: Model) -> _Work:
    """The work in the largest form that fits the memory."""
    lacking: DeviceError | None = None
    for form, its_model in forms_of(experiment, model):
        try:
            return begin(form, its_model)
        except DeviceError as error:
            lacking = error
    assert lacking is not None
    raise lacking


def _watch(at_work: Trainer, experiment: Experiment) -> Watch | None:
    if not experiment.watch:
        return None
    if at_work.federation is None:
        method = experiment.method
        raise SettingError(f"setting watch={list(experiment.watch)}: {method} has no clients; nothing to watch")
    return Watch.of(at_work.federation, experiment.watch)
