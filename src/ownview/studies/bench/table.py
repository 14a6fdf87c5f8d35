"""A suite's results as figures: by dataset, method, protocol and metric, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ownview.evaluation.comparison import Cell, Mark
from ownview.evaluation.findings import Finding
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.cells import CellKey, averaged
from ownview.runs.table import Comparison
from ownview.studies.bench.results import Document, Entry


def tables(values: Document) -> list[Comparison]:
    """One a dataset, in the document's order."""
    every: list[Entry] = [*values["runs"], *values["failures"]]
    return [_table(data, values, every) for data in dict.fromkeys(one["data"] for one in every)]


def _table(data: str, values: Document, every: Sequence[Entry]) -> Comparison:
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
    return Comparison(data, methods, protocols, figures, {name: _warnings(here, name) for name in protocols})


def _figure(key: CellKey, same: Sequence[Entry], compared: Entry | None) -> Cell:
    """Mean over seeds, with interval and mark of the comparison; where there is none, the seeds' own intervals."""
    cell = averaged(key[0], same, key[2])
    if compared is None:
        return cell
    return replace(cell, low=compared["low"], high=compared["high"], mark=Mark(compared["mark"]))


def _warnings(runs: Sequence[Entry], protocol: str) -> tuple[Finding, ...]:
    told = (found for one in runs if one["protocol"] == protocol for found in one["warnings"])
    return tuple(dict.fromkeys(Finding(one["probe"], True, one["sentence"]) for one in told))
