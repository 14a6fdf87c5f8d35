"""How much there is to do in a run, and how long it would take by what like runs took.

work = rounds (epochs rows (1 + negatives) + users ranked / 1000), with the rows, users and items that the catalogue
counts and `ranked` the items that a held-out one is ranked among: samples that pass through training, and scores, of
which a thousand take about as long as a sample. (Honest runs rank all items, up to 300 scores for every sample; of 103
kinds of runs that were recorded under both protocols on the same kind of machine, 57 took less time so.) It leaves out
how wide vectors are and what a method does with a sample; like runs carry that.
"""

from __future__ import annotations

from functools import cache
from statistics import median
from typing import Any, NamedTuple

from ownview.data.datasets.catalog import catalog, load
from ownview.runs.experiment import Experiment
from reproduction.ledger.record import Record, experiment_of

SCORES_A_SAMPLE = 1000
"""Scores that take about as long as a sample does in training."""


class Size(NamedTuple):
    """Of data: users, items and rows."""

    users: int
    items: int
    rows: int


@cache
def size_of(data: str, min_interactions: int | None) -> Size:
    """As the papers print it for this filter, or for the dataset's usual one; embedded data is counted."""
    known = catalog()[data].counts if data in catalog() else ()
    counts = next((one for one in known if one.min_interactions == min_interactions), next(iter(known), None))
    if counts is not None:
        return Size(counts.users, counts.items, counts.rows)
    loaded = load(data)
    return Size(loaded.num_users, loaded.num_items, len(loaded))


def work(asked: Experiment) -> float:
    """Units of what the module's docstring says."""
    size = size_of(asked.data, asked.protocol.min_interactions)
    settings: dict[str, Any] = dict(asked.model().values())
    passes = settings.get("local_epochs", settings.get("epochs", 1))  # a central model may train in one round
    samples = passes * size.rows * (1 + settings.get("negatives", 0))
    ranked = asked.protocol.candidates + 1 if asked.protocol.candidates else size.items
    return float(asked.rounds_needed * (samples + size.users * ranked / SCORES_A_SAMPLE))


class Reckoning:
    """Seconds of runs, by what recorded ones on the same kind of machine took.

    The median seconds for a unit of work is taken over runs of the same method and plug-ins on the same data; where
    there are none, on any data; where there are none either, over all runs.

    Args:
        record: runs that have recorded their seconds.
        device: the kind of machine: runs on others do not count.
    """

    def __init__(self, record: Record, device: str) -> None:
        self.known: dict[tuple[str, ...], list[float]] = {}
        for one in record.runs.values():
            if one["provenance"].get("machine", {}).get("device") == device:
                pace = one["seconds"] / work(experiment_of(one, record.protocols[one["protocol"]]))
                for kind in ((one["method"], one["data"]), (one["method"],), ()):
                    self.known.setdefault(kind, []).append(pace)

    def seconds(self, asked: Experiment, units: float) -> float | None:
        """About how long; None where nothing was recorded."""
        for kind in ((asked.label(), asked.data_label()), (asked.label(),), ()):
            if paces := self.known.get(kind):
                return median(paces) * units
        return None
