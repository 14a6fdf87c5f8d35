"""The set-up of an experiment: the machine, the data as its protocol splits it, and what is asked of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.base.platforms import give_back_freed_memory
from ownview.data.datasets.catalog import load, min_interactions
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine, Workers, machine
from ownview.evaluation.last_splits import split_of
from ownview.evaluation.ranking import Ranker, rankers
from ownview.privacy.entropy import NoiseKey
from ownview.registry import Model
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.provenance import provenance
from ownview.runs.files.sources import METHOD, method_fingerprint
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.trainers import trainer


def load_data(experiment: Experiment, data_dir: Path | None = None) -> Interactions:
    """The data an experiment names."""
    return load(experiment.data, data_dir=data_dir, columns=experiment.columns)


def split_data(experiment: Experiment, data: Interactions) -> Split:
    """Filtered and split as the experiment's protocol says."""
    return split_of(experiment.protocol, data, min_interactions(experiment.data))


@dataclass(frozen=True, eq=False)
class ExperimentSetup:
    """Everything but the model.

    Args:
        machine: where training takes place.
        split: of the data.
        rankers: of validation and of test.
        data: as it was read, before the protocol filtered it.
    """

    machine: Machine
    split: Split
    rankers: tuple[Ranker, Ranker]
    data: Interactions

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        *,
        data: Interactions | None = None,
        memory: str = "auto",
        data_dir: Path | None = None,
        workers: Workers | None = None,
    ) -> ExperimentSetup:
        """Set up what an experiment asks for; `data` where it was made in Python."""
        place = machine(experiment.device, memory, experiment.engine, workers)
        data = load_data(experiment, data_dir) if data is None else data
        split = split_data(experiment, data)
        asked = rankers(experiment.protocol, split, experiment.seed, place.device, place.ranking_bytes)
        give_back_freed_memory()  # splitting sorts copies of all rows
        return cls(place, split, asked, data)

    def trainer(
        self, experiment: Experiment, model: Model, beside: Path = Path(), noise: NoiseKey | None = None
    ) -> Trainer:
        """A model of the experiment, ready for its first round.

        Args:
            experiment: its settings.
            model: its model.
            beside: has the runs that a blend names.
            noise: what noise under a budget is drawn from; None for a fresh key.
        """
        options = experiment.federation.for_rounds(experiment.rounds_of(model))
        made = trainer(model, self.split, experiment.protocol, options, experiment.seed, self.machine, beside, noise)
        give_back_freed_memory()
        return made

    def require_same(self, folder: RunFolder, experiment: Experiment) -> None:
        """Refuse to go on with other data, or another method file, than a run began with."""
        written = folder.read_provenance()
        if written.get(METHOD) not in (None, method_fingerprint(experiment)):
            raise OutputError(
                f"{folder.path}: the method file {experiment.method} has changed since the run began; start a new run"
            )
        known = written.get("data", {}).get("fingerprint")
        if known not in (None, self.split.data.fingerprint()):
            raise OutputError(
                f"{folder.path}: the data {experiment.data!r} has changed since the run began; "
                "start a new run, or bring the old data back"
            )

    def provenance(self, experiment: Experiment) -> dict[str, Any]:
        """Versions, revision, files, data, device and engine, as a run notes them."""
        return provenance(self.split, self.machine, experiment)
