"""A suite's results as figures: by dataset, method, protocol and metric, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ownview.evaluation.comparison import SIGNS, Cell, Mark
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.cells import CellKey, averaged
from ownview.runs.experiment import Experiment
from ownview.runs.tried import Tried, told, tried_of
from ownview.studies.bench.results import Document, Entry

_LEGEND = (
    f"{SIGNS[Mark.LEVEL]}: cannot be told apart from the column's best, {SIGNS[Mark.BEST]} "
    "({how}). Neither stands where rows were made at different times."
)
_HOW = "paired over users, corrected for the choice of the best and for all columns"
_HOW_BEFORE = (
    "paired over users, Wilcoxon's test, Holm's correction over the table, recorded before the choice of the best was "
    "corrected for and before intervals held near 0"
)


@dataclass(frozen=True)
class DataTable:
    """Everything about one dataset.

    Args:
        data: its name.
        methods: rows.
        protocols: groups of columns, with what the held-out item is ranked among.
        figures: by method, protocol and metric; absent where a run failed or is not there.
        seeds: most that any row has.
        warnings: by protocol, what must be known to read its figures.
        legend: what its marks mean, and how they were made.
        tried: by method, how many settings its own were chosen from; None where that is not known.
    """

    data: str
    methods: tuple[str, ...]
    protocols: dict[str, str]
    figures: dict[CellKey, Cell]
    seeds: int
    warnings: dict[str, list[str]]
    legend: str
    tried: dict[str, Tried | None]

    def columns(self) -> list[tuple[str, str]]:
        """(protocol, metric), protocols side by side."""
        return [(protocol, metric) for protocol in self.protocols for metric in HEADLINE]

    def label(self, method: str) -> str:
        """The method, how many settings were tried for it, and how many seeds it has where others have more."""
        found = self.tried.get(method)
        name = method if found is None or found.settings == 1 else f"{method}, {found.settings} tried"
        own = min((one.seeds for (row, _, _), one in self.figures.items() if row == method), default=0)
        return name if own == self.seeds else f"{name} ({own} of {self.seeds} seeds)"

    def settings(self) -> str:
        """How many settings were tried, in a sentence."""
        return told(self.tried, self.data)

    def text(self, method: str, protocol: str, metric: str) -> str:
        """A cell."""
        found = self.figures.get((method, protocol, metric))
        return "-" if found is None else str(found)


def tables(values: Document) -> list[DataTable]:
    """One a dataset, in the document's order."""
    every: list[Entry] = [*values["runs"], *values["failures"]]
    return [_table(data, values, every) for data in dict.fromkeys(one["data"] for one in every)]


def _table(data: str, values: Document, every: Sequence[Entry]) -> DataTable:
    here = [one for one in values["runs"] if one["data"] == data]
    ranked = {one["protocol"]: f"{one['ranked_among']} items" for one in here}
    protocols = {name: ranked[name] for name in values["protocols"] if name in ranked}
    methods = tuple(dict.fromkeys(one["method"] for one in every if one["data"] == data))
    compared = {
        (one["method"], one["protocol"], one["metric"]): one for one in values["comparison"] if one["data"] == data
    }
    figures = {}
    for method in methods:
        for protocol in protocols:
            same = [one for one in here if (one["method"], one["protocol"]) == (method, protocol)]
            for key in [(method, protocol, metric) for metric in HEADLINE if same]:
                figures[key] = _figure(key, same, compared.get(key))
    seeds = max((one.seeds for one in figures.values()), default=0)
    warnings = {name: _warnings(here, name) for name in protocols}
    firsts = {one["method"]: one for one in reversed(here)}
    tried = {method: _tried(firsts[method]) for method in methods if method in firsts}
    return DataTable(data, methods, protocols, figures, seeds, warnings, _legend(list(compared.values())), tried)


def _figure(key: CellKey, same: Sequence[Entry], compared: Entry | None) -> Cell:
    """Mean over seeds, with interval and mark of the comparison; where there is none, the seeds' own intervals."""
    cell = averaged(key[0], same, key[2])
    if compared is None:
        return cell
    return replace(cell, low=compared["low"], high=compared["high"], mark=Mark(compared["mark"]))


def _tried(one: Entry) -> Tried | None:
    made = Experiment.from_dict({"data": one["data"], **one["experiment"]}, f"run {one['run']}")
    return tried_of(one, made)


def _legend(compared: Sequence[Entry]) -> str:
    """Records keep the marks they were made with; those of earlier versions have `p_holm`."""
    return _LEGEND.format(how=_HOW_BEFORE if any("p_holm" in one for one in compared) else _HOW)


def _warnings(runs: Sequence[Entry], protocol: str) -> list[str]:
    told = (found["sentence"] for one in runs if one["protocol"] == protocol for found in one["warnings"])
    return list(dict.fromkeys(told))
