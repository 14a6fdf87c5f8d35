"""One candidate at work, measured on validation only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError
from ownview.data.catalog import load, min_interactions
from ownview.data.splits import Split
from ownview.engine.machine import Machine, machine
from ownview.evaluation.metrics import means
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Ranker, rankers
from ownview.runs.experiment import Experiment
from ownview.runs.provenance import provenance
from ownview.runs.trainers import trainer

Measured = tuple[int, dict[str, float]]
"""A round, from 1, and the metrics on validation after it."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Data split once for all candidates, and the question that validation asks. Test has no place here."""

    machine: Machine
    split: Split
    ranker: Ranker

    @classmethod
    def of(cls, base: Experiment, memory: str, data_dir: Path | None) -> Validation:
        """Split the data of an experiment as its protocol says."""
        require_blind(base.protocol)
        place = machine(base.device, memory, base.engine)
        source = load(base.data, data_dir=data_dir, columns=base.columns)
        split = base.protocol.prepare(source, min_interactions(base.data))
        ranker, _ = rankers(base.protocol, split, base.seed, place.device, place.block_bytes)
        return cls(place, split, ranker)

    def rounds(self, experiment: Experiment) -> Iterator[Measured]:
        """Train a candidate round by round."""
        model = experiment.model()
        protocol = experiment.protocol
        at_work = trainer(model, self.split, protocol, experiment.federation, experiment.seed, self.machine)
        for number in range(1, experiment.rounds_of(model) + 1):
            at_work.round(number)
            yield number, means(self.ranker.rank(at_work), protocol.cutoffs)

    def provenance(self, experiment: Experiment) -> dict[str, Any]:
        """Versions, revision, data and device, as runs note them."""
        return provenance(self.split, self.machine.device, experiment.method)


def require_blind(protocol: Protocol) -> None:
    """Refuse a protocol under which a choice would be made on test."""
    if protocol.selection == "test":
        raise SettingError(
            f"protocol {protocol.name} has selection='test': settings chosen on it would be chosen on the very items "
            "that the result is measured on; expected selection='validation' or 'last'"
        )
