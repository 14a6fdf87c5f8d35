"""Runs become tables: mean and spread over seeds, interval over persons, mark against the column's best.

Every table of runs is made here: that of `ownview compare`, of a suite, of a reproduction, and of the report. A row is
a method under one protocol; its runs differ in nothing but the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from ownview.evaluation.comparison import NOT_ABOVE, SIGNS, Cell, Mark, UserValues, compare_columns
from ownview.evaluation.findings import Finding, fired
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import pooled
from ownview.runs.findings.audits import findings_of
from ownview.runs.run import Run
from ownview.runs.summaries.row_labels import row_labels
from ownview.runs.summaries.tried_settings import NOT_RECORDED, Tried, as_result, tried_of, tried_sentence
from ownview.runs.summaries.user_values import user_values

if TYPE_CHECKING:
    import polars as pl

RowKey = tuple[str, str]
"""What the table calls the row, and the protocol's name."""

CellKey = tuple[str, str, str]
"""The same, and the metric."""

Key = TypeVar("Key")
One = TypeVar("One")


@dataclass(frozen=True)
class OverSeeds:
    """A number of every seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over seeds."""
        return mean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if self.spread is None else f" ± {self.spread:.4f}")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        return {"mean": self.mean, "standard_deviation": self.spread, "values": list(self.values)}


def grouped(pairs: Iterable[tuple[Key, One]]) -> dict[Key, list[One]]:
    """What has the same key together, such as the seeds of a row, in the order keys first come."""
    found: dict[Key, list[One]] = {}
    for key, one in pairs:
        found.setdefault(key, []).append(one)
    return found


def compared(
    rows: Mapping[RowKey, Sequence[Run]], metrics: Sequence[str] = HEADLINE, also: Mapping[str, str] | None = None
) -> dict[CellKey, Cell]:
    """Every row of one dataset compared with the best of its column, and with the row that `also` names for it.

    The order is by column, then by row; p is corrected over all columns. Rows whose seeds ranked different users are
    left out, as is a metric under a protocol where a run has not measured it (see `measured`).
    """
    known = measured(rows, metrics)
    columns: dict[tuple[str, str], dict[str, UserValues]] = {}
    for (label, protocol), seeds in rows.items():
        for metric, values in (user_values(seeds, known[protocol]) or {}).items():
            columns.setdefault((protocol, metric), {})[label] = values
    return {(cell.label, *column): cell for column, cells in compare_columns(columns, also).items() for cell in cells}


def measured(rows: Mapping[RowKey, Sequence[Run]], metrics: Sequence[str]) -> dict[str, list[str]]:
    """Which of the metrics every run of a protocol has, by protocol; recall is of several right answers."""
    runs = grouped((protocol, run) for (_, protocol), seeds in rows.items() for run in seeds)
    return {
        protocol: [name for name in metrics if all(name in run.result["test"] for run in ones)]
        for protocol, ones in runs.items()
    }


def averaged(label: str, results: Sequence[Mapping[str, Any]], metric: str) -> Cell:
    """The cell of a row that is not compared: its interval is the mean of its seeds' own.

    Cuts of one protocol count by how many users each asked. The interval of several is the mean of theirs too, which is
    wider than that of all users together.

    Args:
        label: of the row.
        results: of its seeds and cuts, as result.json and recorded suites have them.
        metric: one with an interval.
    """
    by_seed = grouped((one["seed"], one) for one in results).values()
    over = OverSeeds(_by_seed(results, metric))
    low, high = (
        mean(_over_cuts([(one["interval_95"][metric][end], one) for one in cuts]) for cuts in by_seed) for end in (0, 1)
    )
    users = min(sum(int(one["users_ranked"]) for one in cuts) for cuts in by_seed)
    persons = users if all(len(cuts) == 1 for cuts in by_seed) else None
    return Cell(label, over.mean, over.spread, low, high, len(by_seed), users, Mark.UNPAIRED, persons=persons)


def mean_over_runs(results: Sequence[Mapping[str, Any]], metric: str) -> float:
    """The mean over seeds of any metric on test."""
    return mean(_by_seed(results, metric))


def _by_seed(results: Sequence[Mapping[str, Any]], metric: str) -> tuple[float, ...]:
    by_seed = grouped((one["seed"], one) for one in results).values()
    return tuple(_over_cuts([(one["test"][metric], one) for one in cuts]) for cuts in by_seed)


def _over_cuts(values: Sequence[tuple[float, Mapping[str, Any]]]) -> float:
    """The mean of a number over the users of several cuts of one seed."""
    users = [int(one["users_ranked"]) for _, one in values]
    return sum(value * number for (value, _), number in zip(values, users, strict=True)) / sum(users)


_KEY = ("method", "protocol", "metric")
_FROM_CELL = ("mean", "seeds", "users", "persons", "mark", "against_best", "p_corrected", "not_above")

_LEGEND = (
    f"{SIGNS[Mark.LEVEL]}: cannot be told apart from the column's best, {SIGNS[Mark.BEST]} "
    "({how}). Rows that were made at different times are not compared and have neither mark."
)
LEGEND = _LEGEND.format(
    how="signs of the paired differences flipped by person, corrected for the choice among all pairs of rows and for "
    "all columns"
)
LEGEND_BY_QUESTION = _LEGEND.format(
    how="paired over users, corrected for the choice of the best and for all columns; recorded before a person who is "
    "asked at several cuts counted once"
)
LEGEND_BEFORE = _LEGEND.format(
    how="paired over users, Wilcoxon's test, Holm's correction over the table, recorded before the choice of the best "
    "was corrected for and before intervals held near 0"
)
"""Of tables that were recorded by earlier versions."""

_YARDSTICKS = {
    LEGEND: f"{NOT_ABOVE}: by the same test and correction, cannot be told to be above every yardstick of its column, "
    "rows that count and learn nothing of taste."
}
_YARDSTICKS_BEFORE = (
    f"{NOT_ABOVE}: not above the best yardstick of its column, a row that counts and learns nothing of taste "
    "(Wilcoxon's test of the pair alone, not corrected)."
)


def with_yardsticks(legend: str, cells: Mapping[CellKey, Cell]) -> str:
    """A legend that also says what is not above a yardstick, where any row is not."""
    marked = any(cell.not_above for cell in cells.values())
    return f"{legend} {_YARDSTICKS.get(legend, _YARDSTICKS_BEFORE)}" if marked else legend


def pooling(cells: Mapping[CellKey, Cell]) -> list[str]:
    """By protocol whose cuts are pooled, how many questions its figures are of, and of how many persons."""
    asked: dict[str, Cell] = {}
    for (_, protocol, _), cell in cells.items():
        if cell.persons is not None and cell.persons < cell.users:
            asked.setdefault(protocol, cell)
    return [
        f"`{protocol}`: cuts are pooled, {cell.users:,} questions to {cell.persons:,} persons; a figure is the mean "
        "over questions, and a person is one unit in its interval and marks"
        for protocol, cell in asked.items()
    ]


@dataclass(frozen=True, repr=False)
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
        tried: by method, how many settings its own were chosen from; None where that is not known.
        legend: what its marks mean, and how they were made.
        absent: by method and protocol, why a cell is not there, in two words.
        unvalidated: methods whose record does not have the validation value that their settings were chosen by.
        exposed: by method, what its server reads from one upload; absent where it was not attacked.
        runs: that it is of; none where it was read from a record.
    """

    data: str
    methods: tuple[str, ...]
    ranked: dict[str, str]
    cells: dict[CellKey, Cell]
    findings: dict[str, tuple[Finding, ...]]
    notes: tuple[str, ...] = ()
    chosen_on: dict[str, str] = field(default_factory=dict)
    tried: dict[str, Tried | None] = field(default_factory=dict)
    legend: str = LEGEND
    absent: dict[RowKey, str] = field(default_factory=dict)
    exposed: dict[str, Finding] = field(default_factory=dict)
    unvalidated: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, place: int) -> Run:
        return self.runs[place]

    def __repr__(self) -> str:
        rows = "; ".join(
            f"{method} "
            + ", ".join(f"{cell.mean:.4f}" for column in self.columns if (cell := self._cell(method, column)))
            for method in self.methods
        )
        return f"Comparison({self.data}, {', '.join(' '.join(column) for column in self.columns)}: {rows})"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(' '.join(column))}</th>" for column in self.columns)
        lines = "".join(
            f"<tr><td>{escape(self.label(method))}</td>"
            + "".join(f"<td>{escape(self._text(method, column))}</td>" for column in self.columns)
            + "</tr>"
            for method in self.methods
        )
        return f"<table><tr><th>{escape(self.data)}</th>{heads}</tr>{lines}</table><div>{escape(self.legend)}</div>"

    def _cell(self, method: str, column: tuple[str, str]) -> Cell | None:
        return self.cells.get((method, *column))

    def _text(self, method: str, column: tuple[str, str]) -> str:
        cell = self._cell(method, column)
        return self.missing(method, column[0]) if cell is None else f"{cell.mean:.4f} {cell.signs}".rstrip()

    def to_frame(self) -> pl.DataFrame:
        """A row a method, protocol and metric: mean, spread over seeds, interval over users, mark, p."""
        import polars as pl  # noqa: PLC0415 - slow to import, and most of the program needs it not

        columns = ("mean", "spread", "low", "high", "seeds", "users", "mark", "p_corrected")
        cells = self.cells.items()
        rows = [dict(zip(_KEY, key, strict=True)) | {one: getattr(cell, one) for one in columns} for key, cell in cells]
        return pl.DataFrame(rows, schema_overrides={"spread": pl.Float64, "p_corrected": pl.Float64})

    @classmethod
    def of(cls, runs: Sequence[Run], findings: Mapping[str, tuple[Finding, ...]] | None = None) -> Comparison:
        """Gather runs on the same data; runs of one method and protocol are seeds of each other.

        Args:
            runs: finished.
            findings: of probes, by protocol; where None, those that the run folders hold.
        """
        column = {run.experiment.protocol.name: pooled(run.experiment.protocol.name) for run in runs}
        labels = row_labels([run.experiment for run in runs])
        rows = grouped(
            ((label, column[run.experiment.protocol.name]), run) for label, run in zip(labels, runs, strict=True)
        )
        methods = tuple(dict.fromkeys(method for method, _ in rows))
        cells = _cells(rows)
        notes = dict.fromkeys(f"{run.experiment.protocol.name}: {note}" for run in runs for note in run.result["notes"])
        notes |= dict.fromkeys([*pooling(cells), *_unpaired(cells)])
        chosen = {column[run.experiment.protocol.name]: run.experiment.protocol.selection for run in runs}
        ranked = {column[run.experiment.protocol.name]: run.experiment.protocol.ranked_among for run in runs}
        known: dict[str, tuple[Finding, ...]] = {}
        for name, found in (findings_of(runs) if findings is None else findings).items():
            known[column.get(name, name)] = (*known.get(column.get(name, name), ()), *found)
        data = runs[0].experiment.data_label()
        tried = {method: tried_of(own[0].result, own[0].experiment) for (method, _), own in rows.items()}
        every = (*notes, tried_sentence(tried, data))
        legend = with_yardsticks(LEGEND, cells)
        return cls(data, methods, ranked, cells, known, every, chosen, tried, legend, runs=tuple(runs))

    @property
    def columns(self) -> list[tuple[str, str]]:
        """(protocol, metric), protocols side by side."""
        return [(protocol, metric) for protocol in self.ranked for metric in HEADLINE]

    @property
    def seeds(self) -> int:
        """Most that any row has."""
        return max((cell.seeds for cell in self.cells.values()), default=0)

    def missing(self, method: str, protocol: str) -> str:
        """Text of an empty cell: the reason, or a dash."""
        return self.absent.get((method, protocol), "-")

    def label(self, method: str) -> str:
        """The method, how many settings were tried for it, and how many seeds it has where others have more."""
        found = self.tried.get(method)
        if method in self.tried and found is None:
            name = f"{method}, {NOT_RECORDED}"
        else:
            name = method if found is None or found.settings == 1 else f"{method}, {found.settings} tried"
        own = min((cell.seeds for (row, _, _), cell in self.cells.items() if row == method), default=0)
        return name if own == self.seeds else f"{name} ({own} of {self.seeds} seeds)"

    @property
    def settings(self) -> str:
        """How many settings were tried, in a sentence."""
        return "; ".join([tried_sentence(self.tried, self.data), *self._without_validation()])

    def _without_validation(self) -> list[str]:
        if not self.unvalidated:
            return []
        every = set(self.unvalidated) >= set(self.tried)
        return [f"validation values: not recorded for {'any row' if every else ', '.join(self.unvalidated)}"]

    def warnings(self, protocol: str) -> list[Finding]:
        """The findings about a protocol that must stand beside its numbers."""
        return fired(self.findings.get(protocol, ()))

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
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
                    **{name: cell.to_dict()[name] for name in _FROM_CELL},
                    "spread_over_seeds": cell.spread,
                    "interval_95_over_users": [cell.low, cell.high],
                    "warnings": [finding.probe for finding in self.warnings(protocol)],
                    "chosen_on": self.chosen_on[protocol],
                    "ranked_among": self.ranked[protocol],
                    **as_result(self.tried[method]),
                }
                for (method, protocol, metric), cell in self.cells.items()
            ],
            "notes": list(self.notes),
            "attacks": {method: found.to_dict() for method, found in self.exposed.items()},
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


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, a line a row."""
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]
