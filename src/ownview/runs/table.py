"""Results side by side: one row a method, one group of columns a protocol, and what must be known to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from ownview.evaluation.comparison import Mark, Row, UserValues, compare_columns
from ownview.evaluation.findings import Finding, fired
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.audits import findings_of
from ownview.runs.per_user import user_values
from ownview.runs.run import Run


@dataclass(frozen=True)
class Comparison:
    """All cells, by method, protocol and metric; findings by protocol, those that do not fire included."""

    data: str
    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    cells: dict[tuple[str, str, str], Row]
    notes: tuple[str, ...]
    chosen_on: dict[str, str]
    ranked: dict[str, str]
    findings: dict[str, tuple[Finding, ...]]

    @classmethod
    def of(cls, runs: Sequence[Run], findings: Mapping[str, tuple[Finding, ...]] | None = None) -> Comparison:
        """Gather runs on the same data; runs of one method and protocol are seeds of each other.

        Args:
            runs: finished.
            findings: of probes, by protocol; where None, what the run folders tell.
        """
        rows = _grouped(runs)
        methods = tuple(dict.fromkeys(method for method, _ in rows))
        protocols = tuple(dict.fromkeys(protocol for _, protocol in rows))
        cells = _cells(rows)
        notes = dict.fromkeys(f"{run.experiment.protocol.name}: {note}" for run in runs for note in run.result["notes"])
        notes |= dict.fromkeys(_unpaired(cells))
        chosen = {run.experiment.protocol.name: run.experiment.protocol.selection for run in runs}
        ranked = {run.experiment.protocol.name: run.experiment.protocol.ranked_among for run in runs}
        known = dict(findings_of(runs) if findings is None else findings)
        return cls(runs[0].experiment.data_label(), methods, protocols, cells, tuple(notes), chosen, ranked, known)

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


def _grouped(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Seeds by method and protocol."""
    rows: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        rows.setdefault((run.experiment.label(), run.experiment.protocol.name), []).append(run)
    return rows


def _cells(rows: Mapping[tuple[str, str], Sequence[Run]]) -> dict[tuple[str, str, str], Row]:
    """Every row compared with the best of its column."""
    columns: dict[tuple[str, str], dict[str, UserValues]] = {}
    alone: dict[tuple[str, str, str], Row] = {}
    for (method, protocol), seeds in rows.items():
        values = user_values(seeds, HEADLINE)
        for metric in HEADLINE:
            if values is None:
                alone[method, protocol, metric] = _of_different_users(method, seeds, metric)
            else:
                columns.setdefault((protocol, metric), {})[method] = values[metric]
    compared = {
        (row.label, protocol, metric): row
        for (protocol, metric), column in compare_columns(columns).items()
        for row in column
    } | alone
    return {(*row, metric): compared[*row, metric] for row in rows for metric in HEADLINE}


def _of_different_users(label: str, seeds: Sequence[Run], metric: str) -> Row:
    """Seeds that ranked different users have no value a user in common: their intervals are averaged."""
    values = [run.result["test"][metric] for run in seeds]
    lows, highs = zip(*(run.result["interval_95"][metric] for run in seeds), strict=True)
    users = min(int(run.result["users_ranked"]) for run in seeds)
    return Row(label, mean(values), stdev(values), mean(lows), mean(highs), len(seeds), users, Mark.UNPAIRED)


def _unpaired(cells: Mapping[tuple[str, str, str], Row]) -> list[str]:
    return [
        f"{protocol}: {method} ranked other users or was measured otherwise than the best; it is not compared with it"
        for (method, protocol, _), row in cells.items()
        if row.mark is Mark.UNPAIRED
    ]
