"""What the runs of one row came to: its cells, curves and costs, what it recommends, and what must be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np
from torch import Tensor

from ownview.data.interactions import FloatArray, IntArray
from ownview.evaluation.comparison import Cell, Mark
from ownview.evaluation.findings import by_rule
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import NONE
from ownview.reports.reading import SeenRun
from ownview.runs.table import CellKey, OverSeeds, RowKey, averaged, compared

PlainCells = dict[str, dict[str, Any]]
"""By metric, values for the page."""


def cells(rows: Mapping[RowKey, Sequence[SeenRun]]) -> dict[RowKey, PlainCells]:
    """The cells of one dataset's table: mean and spread over seeds, and for some metrics an interval and marks.

    The interval (95 %) is that of users' means over seeds; where users.csv is missing, the mean of the runs' own
    intervals. `mark` is where the row stands against the best of its column; `alike` names the best where the row
    cannot be told apart from it and, for the best itself, all such rows; `not_above` names the yardstick that the row
    is not above. The tests are those of `ownview compare` and `ownview bench`, corrected over the table. Cuts of one
    protocol are pooled: the mean is over all users asked.
    """
    known = compared(rows)
    alike = _alike(known)
    return {
        row: {metric: _cell((*row, metric), seeds, known, alike) for metric in seeds[0].result["test"]}
        for row, seeds in rows.items()
    }


def _cell(
    key: CellKey, seeds: Sequence[SeenRun], known: Mapping[CellKey, Cell], alike: Mapping[CellKey, list[str]]
) -> dict[str, Any]:
    label, _, metric = key
    results = [run.result for run in seeds if metric in run.result["test"]]
    over = OverSeeds(tuple(one["test"][metric] for one in results))
    made = {"mean": over.mean, "spread": over.spread}
    if metric not in HEADLINE:
        return made
    cell = known.get(key) or averaged(label, results, metric)
    if len({run.experiment.protocol.name for run in seeds}) > 1:
        made = {"mean": cell.mean, "spread": cell.spread}
    marks = {"mark": str(cell.mark), "alike": alike.get(key, []), "not_above": cell.not_above}
    return {**made, "low": cell.low, "high": cell.high, "users": cell.users, **marks}


def _alike(known: Mapping[CellKey, Cell]) -> dict[CellKey, list[str]]:
    best = {(protocol, metric): label for (label, protocol, metric), one in known.items() if one.mark is Mark.BEST}
    found: dict[CellKey, list[str]] = {}
    for (label, protocol, metric), one in known.items():
        if one.mark is Mark.LEVEL:
            first = best[protocol, metric]
            found[label, protocol, metric] = [first]
            found.setdefault((first, protocol, metric), []).append(label)
    return found


MOST_POINTS = 200
"""Longer curves keep evenly spaced rounds, the first and the last among them."""


def curve(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Metrics and loss by round; None for models without rounds."""
    every = _shared_lines(runs)
    stage = "validation" if any("validation" in line for line in every[0]) else "test"
    lines = [_kept([line for line in one if stage in line]) for one in every]
    if len(lines[0]) < 2:
        return None
    found: dict[str, Any] = {"stage": stage, "rounds": [line["round"] for line in lines[0]]}
    for metric in HEADLINE:
        found[metric] = _means([[line[stage][metric] for line in one] for one in lines])
    if all(line["loss"] is not None for one in lines for line in one):
        found["loss"] = _means([[line["loss"] for line in one] for one in lines])
    return found


def sparsity(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """By shared table and round the share of values that are 0, or below 0.001; None where nothing is shared."""
    lines = [_kept(one) for one in _shared_lines(runs)]
    sparsities = [line.get("sparsity") or {} for one in lines for line in one]
    tables = {
        table: [share for share in names if all(share in line.get(table, {}) for line in sparsities)]
        for table, names in (sparsities[0] if sparsities else {}).items()
    }
    if len(lines[0]) < 2 or not any(tables.values()):
        return None
    shares = {
        table: {share: _means([[line["sparsity"][table][share] for line in one] for one in lines]) for share in names}
        for table, names in tables.items()
        if names
    }
    return {"rounds": [line["round"] for line in lines[0]], "tables": shares}


def _shared_lines(runs: Sequence[SeenRun]) -> list[list[dict[str, Any]]]:
    """Lines of the rounds that every seed has."""
    length = min(len(run.rounds) for run in runs)
    return [run.rounds[:length] for run in runs]


def _kept(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most as many points as a curve shows."""
    places = np.linspace(0, len(lines) - 1, min(len(lines), MOST_POINTS)).round()
    return [lines[k] for k in np.unique(places).astype(int).tolist()]


def _means(rows: list[list[float]]) -> list[float]:
    return [round(float(value), 6) for value in np.mean(rows, axis=0)]


def costs(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Means over seeds; None for models that are not federated.

    Bytes are those on the wire, up and down, mean over rounds and clients. Seconds are the slowest client's local
    training, timed alone, plus the server's part; None where a run has not recorded them.
    """
    results = [run.result for run in runs if (run.result.get("cost") or {}).get("seconds")]
    if len(results) != len(runs):
        return None
    return {
        "bytes": mean(one["bytes_down_per_client"] + one["bytes_up_per_client"] for one in results),
        "up": mean(one["bytes_up_per_client"] for one in results),
        "down": mean(one["bytes_down_per_client"] for one in results),
        "seconds": mean(one["cost"]["seconds"]["round"] for one in results),
        "client_bytes": mean(one["cost"]["client_bytes"] for one in results),
        "server_bytes": mean(one["cost"]["server_bytes"] for one in results),
    }


def findings(protocols: Sequence[Protocol], name: str, runs: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """Findings on one dataset and protocol: probe, whether it fires, a sentence, and where it comes from.

    They are taken from audit.json of one of the runs, which comparisons write. Where none has it, the protocol's
    settings show what they can. Several protocols are cuts of one; what is true of all of them stands once.
    """
    found: list[dict[str, Any]] = []
    for protocol in protocols:
        measured = next((run.findings for run in runs if run.experiment.protocol == protocol and run.findings), None)
        source = "protocol" if measured is None else "audit.json"
        cut = f"{protocol.name}: " if len(protocols) > 1 and measured is not None else ""
        notes = [
            {"probe": one.probe, "fires": one.fires, "sentence": f"{cut}{one.sentence}", "source": source}
            for one in measured or by_rule(protocol)
        ]
        found += [one for one in notes if one not in found]
    prints = [
        {run.provenance.get("data", {}).get("fingerprint") for run in runs if run.experiment.protocol == cut} - {None}
        for cut in protocols  # every cut leaves other users
    ]
    if (most := max(map(len, prints))) > 1:
        sentence = f"the runs under protocol {name} were made from {most} different versions of the data"
        found.append({"probe": "data", "fires": True, "sentence": sentence, "source": "provenance"})
    return sorted(found, key=lambda one: not one["fires"])


BANDS = (0.01, 0.05, 0.2, 0.5, 1.0)
"""Items by popularity: the top 1 %, the next up to 5 %, 20 %, 50 %, and the rest."""

_SHOWN_HISTORY = 40
_OFTEN = 10


class Titles(dict[str, int]):
    """Every title once; others refer to it by its place."""

    def place(self, title: str) -> int:
        """Where the title stands; it is added if need be."""
        return self.setdefault(title, len(self))


def taste(runs: Sequence[SeenRun], titles: Titles) -> dict[str, Any] | None:
    """Coverage, Gini, bands of popularity and the items recommended most; None where the runs have no lists."""
    known = [run.recommended for run in runs if run.recommended is not None]
    if len(known) != len(runs):
        return None
    bands = [_sums(tensors["popularity"].numpy(), _counts(tensors)) for tensors, _ in known]
    tensors, about = known[0]
    counts = _counts(tensors)
    often = [int(item) for item in np.argsort(-counts, kind="stable")[:_OFTEN] if counts[item]]
    return {
        "coverage": mean(run.result["test"]["coverage@10"] for run in runs),
        "gini": mean(run.result["test"]["Gini@10"] for run in runs),
        "bands": [round(float(share), 5) for share in np.mean(bands, axis=0)],
        "often": [[titles.place(about["titles"][str(i)]), round(counts[i] / len(tensors["lists"]), 4)] for i in often],
    }


def chosen(run: SeenRun) -> list[float] | None:
    """The bands of what users did choose: their training items."""
    if run.recommended is None:
        return None
    popularity = run.recommended[0]["popularity"].numpy()
    return [round(float(share), 5) for share in _sums(popularity, popularity)]


def people(runs: Mapping[str, SeenRun], titles: Titles) -> list[dict[str, Any]]:
    """Sample users of one dataset and protocol with their lists under each variant.

    Args:
        runs: by variant, one seed of it.
        titles: grows.
    """
    found: dict[str, dict[str, Any]] = {}
    for label, run in runs.items():
        tensors, about = run.recommended or ({}, {"samples": []})
        for sample in (one for one in about["samples"] if one["row"] is not None):
            named = {int(item): title for item, title in about["titles"].items()}
            person = found.setdefault(sample["user"], _person(sample, named, titles))
            items = tensors["lists"][sample["row"]].tolist()
            right = sample["test"]
            person["lists"][label] = [[titles.place(named[i]), int(i in right)] for i in items if i != NONE]
    return sorted(found.values(), key=lambda person: (-len(person["lists"]), person["known"]))


def _person(sample: dict[str, Any], named: Mapping[int, str], titles: Titles) -> dict[str, Any]:
    """History latest first."""
    recent = [item for item in reversed(sample["history"]) if item in named][:_SHOWN_HISTORY]
    return {
        "user": sample["user"],
        "known": len(sample["history"]),
        "history": [titles.place(named[item]) for item in recent],
        "test": [titles.place(named[item]) for item in sample["test"]],
        "lists": {},
    }


def _counts(tensors: Mapping[str, Tensor]) -> IntArray:
    """[m] how often each item is recommended."""
    lists = tensors["lists"].numpy()
    return np.bincount(lists[lists >= 0].reshape(-1), minlength=len(tensors["popularity"]))


def _sums(popularity: IntArray, counts: IntArray) -> FloatArray:
    """[bands] share of `counts` that falls on the items of each band of popularity."""
    order = np.argsort(-popularity, kind="stable")
    ends = [max(1, round(share * len(order))) for share in BANDS]
    parts = [counts[order[start:end]].sum() for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return np.asarray(parts, float) / max(int(counts.sum()), 1)
