"""What is recommended: how much of the catalogue, how popular, and to some users by title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np
from torch import Tensor

from ownview.data.interactions import FloatArray, IntArray
from ownview.data.splits import NONE
from ownview.report.reading import SeenRun

BANDS = (0.01, 0.05, 0.2, 0.5, 1.0)
"""Items by popularity: the top 1 %, the next up to 5 %, 20 %, 50 %, and the rest."""

_SHOWN_HISTORY = 40
_OFTEN = 10


@dataclass
class Titles:
    """Every title once; others refer to it by its place."""

    all: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, title: str) -> int:
        """Where the title stands; it is added if need be."""
        if title not in self.places:
            self.places[title] = len(self.all)
            self.all.append(title)
        return self.places[title]


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
        if run.recommended is None:
            continue
        tensors, about = run.recommended
        for sample in about["samples"]:
            if sample["row"] is None:
                continue
            named = {int(item): title for item, title in about["titles"].items()}
            person = found.setdefault(sample["user"], _person(sample, named, titles))
            items = tensors["lists"][sample["row"]].tolist()
            person["lists"][label] = [[titles.place(named[i]), int(i == sample["test"])] for i in items if i != NONE]
    return sorted(found.values(), key=lambda person: (-len(person["lists"]), person["known"]))


def _person(sample: dict[str, Any], named: Mapping[int, str], titles: Titles) -> dict[str, Any]:
    """History latest first."""
    recent = [item for item in reversed(sample["history"]) if item in named][:_SHOWN_HISTORY]
    return {
        "user": sample["user"],
        "known": len(sample["history"]),
        "history": [titles.place(named[item]) for item in recent],
        "test": None if sample["test"] == NONE else titles.place(named[sample["test"]]),
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
