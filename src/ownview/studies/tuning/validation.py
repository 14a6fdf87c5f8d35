"""One candidate at work, measured on validation only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.evaluation.metrics import means
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.setup import ExperimentSetup

Measured = tuple[int, dict[str, float]]
"""A round, from 1, and the metrics on validation after it."""


@dataclass(frozen=True, eq=False)
class Validation:
    """One set-up for all candidates. Of its two questions only that of validation is asked."""

    setup: ExperimentSetup

    @classmethod
    def of(cls, base: Experiment, memory: str, data_dir: Path | None) -> Validation:
        """Split the data of an experiment as its protocol says."""
        require_blind(base.protocol)
        return cls(ExperimentSetup.of(base, memory=memory, data_dir=data_dir))

    def rounds(self, experiment: Experiment) -> Iterator[Measured]:
        """Train a candidate round by round; those that are measured."""
        model = experiment.model()
        at_work, (ranker, _) = self.setup.trainer(experiment, model), self.setup.rankers
        rounds = experiment.rounds_of(model)
        for number in range(1, rounds + 1):
            at_work.round(number)
            if number == rounds or number % experiment.measure_every == 0:
                yield number, means(ranker.rank(at_work.asked(ranker.question)), experiment.protocol.cutoffs)


def require_blind(protocol: Protocol) -> None:
    """Refuse a protocol under which a choice would be made on test."""
    if protocol.selection == "test":
        raise SettingError(
            f"protocol {protocol.name} has selection='test': settings chosen on it would be chosen on the very items "
            "that the result is measured on; expected selection='validation' or 'last'"
        )
