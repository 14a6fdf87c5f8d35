"""Published figures that runs of the report stand beside.

A run matches a published row exactly when method, settings, federation, rounds and protocol are those that the row is
reproduced with. It is near when only numbers differ (rates, sizes, rounds) or what the round was chosen on: the same
variant of the same method on the same data, ranked among as many items. Anything else is no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import mean
from typing import Any

from ownview.evaluation.metrics import HEADLINE
from ownview.reports.reading import SeenRun, Variant, settings_of
from ownview.runs.experiment import Experiment
from reproduction.papers import Figure, figures
from reproduction.papers import settings_of as settings_of_paper
from reproduction.plan import experiment, missing

_OF_PROTOCOL = ("min_interactions", "repeats", "split", "negatives_avoid", "candidates", "candidates_avoid", "ties")
"""Settings of a protocol without which figures are not comparable at all."""


def against_papers(data: str, found: Sequence[Variant]) -> list[dict[str, Any]]:
    """Every published HR@10 and NDCG@10 on this data that a variant stands beside."""
    points = []
    for figure, asked in _published(data):
        for place, variant in enumerate(found):
            for protocol, runs in variant.runs.items():
                differs = _differences(asked, runs[0])
                if differs is not None:
                    here = mean(run.result["test"][figure.metric] for run in runs)
                    of_paper = {name: getattr(figure, name) for name in ("paper", "table", "metric")}
                    of_paper |= {"row": figure.method, "published": figure.value}
                    points.append(
                        {**of_paper, "here": here, "variant": place, "protocol": protocol, "differs": differs}
                    )
    return points


@cache
def _published(data: str) -> tuple[tuple[Figure, Experiment], ...]:
    """Figures on this data that this version can run, and what they are run with; groups of users are left out."""
    found = []
    for figure in figures():
        if figure.metric in HEADLINE and settings_of_paper(figure.paper).data[figure.data].dataset == data:
            asked = _asked(replace(figure, metric="", value=0.0))
            found += [] if asked is None else [(figure, asked)]
    return tuple(found)


@cache
def _asked(row: Figure) -> Experiment | None:
    """What reproduces a published row, whichever metric; None where it cannot be run, or is about a group of users."""
    setup = settings_of_paper(row.paper).setup(row)
    if setup is None or setup.inactive or missing(setup):
        return None
    asked = experiment(setup, setup.protocol)
    return asked.resolved(asked.model())


def _differences(asked: Experiment, run: SeenRun) -> list[str] | None:
    """What differs, in words; None where the run is no match."""
    here = run.experiment
    if here.label() != asked.label():
        return None
    if any(getattr(here.protocol, name) != getattr(asked.protocol, name) for name in _OF_PROTOCOL):
        return None
    wanted, mine = settings_of(asked), settings_of(here)
    differing = [name for name in wanted if mine.get(name) != wanted[name]]
    if any(not _is_number(wanted[name]) for name in differing):
        return None
    differences = [f"{name} {mine.get(name)} here, {wanted[name]} there" for name in differing]
    if here.protocol.selection != asked.protocol.selection:
        differences.append(f"round chosen on {here.protocol.selection} here, on {asked.protocol.selection} there")
    return differences


def _is_number(value: Any) -> bool:
    """Whole numbers, fractions, and lists of them (widths of layers)."""
    if isinstance(value, list):
        return all(map(_is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)
