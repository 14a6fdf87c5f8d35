"""Results side by side: one row a method, one group of columns a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from ownview.runs.run import Run

SHOWN = ("HR@10", "NDCG@10")


@dataclass(frozen=True)
class Cell:
    """A metric of one method under one protocol: mean over seeds, spread, and a 95 % interval over users."""

    mean: float
    spread: float | None
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class Comparison:
    """All cells, by method, protocol and metric."""

    data: str
    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    cells: dict[tuple[str, str, str], Cell]
    notes: tuple[str, ...]
    chosen_on: dict[str, str]
    ranked: dict[str, str]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Comparison:
        """Gather runs on the same data; runs of one method and protocol are seeds of each other."""
        methods = tuple(dict.fromkeys(run.experiment.label() for run in runs))
        protocols = tuple(dict.fromkeys(run.experiment.protocol.name for run in runs))
        cells = {}
        for method in methods:
            for protocol in protocols:
                same = [r for r in runs if r.experiment.label() == method and r.experiment.protocol.name == protocol]
                for metric in SHOWN if same else ():
                    cells[method, protocol, metric] = _cell([r.result for r in same], metric)
        notes = dict.fromkeys(f"{run.experiment.protocol.name}: {note}" for run in runs for note in run.result["notes"])
        chosen = {run.experiment.protocol.name: run.experiment.protocol.selection for run in runs}
        ranked = {run.experiment.protocol.name: _ranked_among(run) for run in runs}
        return cls(runs[0].experiment.data_label(), methods, protocols, cells, tuple(notes), chosen, ranked)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "data": self.data,
            "results": [
                {
                    "method": method,
                    "protocol": protocol,
                    "metric": metric,
                    "mean": cell.mean,
                    "spread_over_seeds": cell.spread,
                    "interval_95_over_users": [cell.low, cell.high],
                    "seeds": cell.seeds,
                    "chosen_on": self.chosen_on[protocol],
                    "ranked_among": self.ranked[protocol],
                }
                for (method, protocol, metric), cell in self.cells.items()
            ],
            "notes": list(self.notes),
        }


def _ranked_among(run: Run) -> str:
    sampled = run.experiment.protocol.candidates
    return f"{sampled + 1} items" if sampled else "all items"


def _cell(results: Sequence[dict[str, Any] | Any], metric: str) -> Cell:
    values = [result["test"][metric] for result in results]
    lows, highs = zip(*(result["interval_95"][metric] for result in results), strict=True)
    spread = stdev(values) if len(values) > 1 else None
    return Cell(mean(values), spread, mean(lows), mean(highs), len(values))
