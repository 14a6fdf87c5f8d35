"""Results side by side: one row a method, one group of columns a protocol, and what must be known to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ownview.evaluation.comparison import SIGNS, Cell, Mark
from ownview.evaluation.findings import Finding, fired
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.audits import findings_of
from ownview.runs.cells import CellKey, RowKey, averaged, compared, rows_of
from ownview.runs.run import Run

LEGEND = (
    f"{SIGNS[Mark.LEVEL]}: cannot be told apart from the column's best, {SIGNS[Mark.BEST]} "
    "(paired over users, Wilcoxon's test, Holm's correction over the table). "
    "Neither stands where rows were made at different times."
)


@dataclass(frozen=True)
class Comparison:
    """Everything about one dataset.

    Args:
        data: its name.
        methods: rows.
        ranked: by protocol, a group of columns each, what the held-out item is ranked among.
        cells: by method, protocol and metric; absent where a run failed or is not there.
        findings: by protocol, those that do not fire included.
        notes: on the data.
        chosen_on: by protocol, what chooses the round.
    """

    data: str
    methods: tuple[str, ...]
    ranked: dict[str, str]
    cells: dict[CellKey, Cell]
    findings: dict[str, tuple[Finding, ...]]
    notes: tuple[str, ...] = ()
    chosen_on: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], findings: Mapping[str, tuple[Finding, ...]] | None = None) -> Comparison:
        """Gather runs on the same data; runs of one method and protocol are seeds of each other.

        Args:
            runs: finished.
            findings: of probes, by protocol; where None, what the run folders tell.
        """
        rows = rows_of(((run.experiment.label(), run.experiment.protocol.name), run) for run in runs)
        methods = tuple(dict.fromkeys(method for method, _ in rows))
        cells = _cells(rows)
        notes = dict.fromkeys(f"{run.experiment.protocol.name}: {note}" for run in runs for note in run.result["notes"])
        notes |= dict.fromkeys(_unpaired(cells))
        chosen = {run.experiment.protocol.name: run.experiment.protocol.selection for run in runs}
        ranked = {run.experiment.protocol.name: run.experiment.protocol.ranked_among for run in runs}
        known = dict(findings_of(runs) if findings is None else findings)
        return cls(runs[0].experiment.data_label(), methods, ranked, cells, known, tuple(notes), chosen)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """(protocol, metric), protocols side by side."""
        return [(protocol, metric) for protocol in self.ranked for metric in HEADLINE]

    @property
    def seeds(self) -> int:
        """Most that any row has."""
        return max((cell.seeds for cell in self.cells.values()), default=0)

    def label(self, method: str) -> str:
        """The method, and how many seeds it has where others have more."""
        own = min((cell.seeds for (row, _, _), cell in self.cells.items() if row == method), default=0)
        return method if own == self.seeds else f"{method} ({own} of {self.seeds} seeds)"

    def warnings(self, protocol: str) -> list[Finding]:
        """The findings about a protocol that must stand beside its numbers."""
        return fired(self.findings.get(protocol, ()))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "data": self.data,
            "findings": {
                protocol: [finding.to_dict() for finding in found] for protocol, found in self.findings.items()
            },
            "results": [
                {
                    "method": method,
                    "protocol": protocol,
                    "metric": metric,
                    "mean": cell.mean,
                    "spread_over_seeds": cell.spread,
                    "interval_95_over_users": [cell.low, cell.high],
                    "seeds": cell.seeds,
                    "users": cell.users,
                    "mark": str(cell.mark),
                    "against_best": None if cell.against_best is None else cell.to_dict()["against_best"],
                    "p_holm": cell.p_holm,
                    "warnings": [finding.probe for finding in self.warnings(protocol)],
                    "chosen_on": self.chosen_on[protocol],
                    "ranked_among": self.ranked[protocol],
                }
                for (method, protocol, metric), cell in self.cells.items()
            ],
            "notes": list(self.notes),
        }


def _cells(rows: Mapping[RowKey, Sequence[Run]]) -> dict[CellKey, Cell]:
    """By row; seeds that ranked different users have no value a user in common, and their intervals are averaged."""
    known = compared(rows)
    return {
        (*row, metric): known.get((*row, metric)) or averaged(row[0], [run.result for run in seeds], metric)
        for row, seeds in rows.items()
        for metric in HEADLINE
    }


def _unpaired(cells: Mapping[CellKey, Cell]) -> list[str]:
    return [
        f"{protocol}: {method} ranked other users or was measured otherwise than the best; it is not compared with it"
        for (method, protocol, _), cell in cells.items()
        if cell.mark is Mark.UNPAIRED
    ]
