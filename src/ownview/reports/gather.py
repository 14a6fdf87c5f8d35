"""From run folders to one page with everything inside: a model of plain values, and the HTML that draws it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.base.offline_page import offline_page
from ownview.base.version import __version__
from ownview.evaluation.named_protocols import PROTOCOLS, pooled
from ownview.evaluation.picture import picture
from ownview.evaluation.protocol import Protocol
from ownview.reports.attacks import exposed
from ownview.reports.by_user import chance, distribution, first_of_cuts, groups
from ownview.reports.pictures import MOST_TSNE, has_tsne, layouts, merging, spectra, trajectories, watched_runs, weights
from ownview.reports.reading import SeenRun, Variant, protocol_names, read_run, variants
from ownview.reports.results import (
    BANDS,
    PlainCells,
    Titles,
    cells,
    chosen,
    costs,
    curve,
    findings,
    people,
    sparsity,
    taste,
)
from ownview.runs.files.folder import RunFolder
from ownview.runs.findings.exposure import LIAR, UPLOAD
from ownview.runs.summaries.tried_settings import Tried, tried_of, tried_sentence
from ownview.runs.table import grouped

Model = dict[str, Any]


@dataclass(frozen=True)
class Publications:
    """Published figures to draw beside those of runs; none by default: the library brings no papers' figures.

    Args:
        beside: from a dataset's name and its variants to the figures that one of them stands beside.
        citations: papers by name.
    """

    beside: Callable[[str, Sequence[Variant]], list[Model]] = lambda name, found: []
    citations: Mapping[str, str] = field(default_factory=dict)


def gather(
    folders: Sequence[Path],
    title: str = "",
    done: Callable[[str], None] = lambda what: None,
    verdict: Sequence[str] = (),
    publications: Publications | None = None,
) -> Model:
    """Everything the page shows.

    Args:
        folders: of runs; unfinished ones are named on the page and take no part.
        title: of the page; without one the datasets' names.
        done: called with the name of every run that was read.
        verdict: sentences that the page begins with; then everything but the table is folded, where it is about one
            dataset and few methods.
        publications: figures of papers to draw beside those of runs; none where None.

    Raises:
        OutputError: a folder is no run, or damaged, or none has finished.
    """
    beside = publications or Publications()
    opened = [RunFolder.open(folder) for folder in folders]
    unfinished = [one.path for one in opened if not one.finished]
    runs = []
    for one in opened:
        if one.finished:
            runs.append(read_run(one.path))
        done(one.path.name)
    if not runs:
        raise OutputError(f"{unfinished[0]}: no run has finished; {RunFolder(unfinished[0]).go_on}")
    by_data = grouped((run.experiment.data_label(), run) for run in runs)
    datasets = [_dataset(name, mine, MOST_TSNE // len(by_data), beside) for name, mine in by_data.items()]
    papers = {point["paper"] for one in datasets for point in one["published"]}
    return {
        "title": title or ", ".join(by_data),
        "verdict": list(verdict),
        "about": {
            "version": __version__,
            "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "runs": len(runs),
            "revisions": _distinct(run.provenance.get("revision") for run in runs),
            "devices": _distinct(run.provenance.get("machine", {}).get("device") for run in runs),
            "unfinished": [f"{path.resolve().parent.name}/{path.name}" for path in unfinished],
            "missing": _missing(runs),
            "tsne": has_tsne(),
        },
        "bands": list(BANDS),
        "datasets": datasets,
        "papers": {name: text for name, text in beside.citations.items() if name in papers},
    }


def _dataset(name: str, runs: Sequence[SeenRun], most_tsne: int, publications: Publications) -> Model:
    # Honest first, then paper, then what people made themselves.
    asked = {run: pooled(run.experiment.protocol.name) for run in runs}
    names = protocol_names(sorted(runs, key=lambda run: [*PROTOCOLS, asked[run]].index(asked[run])))
    found = variants(runs, names)
    titles = Titles()
    by_name = grouped((label, protocol) for protocol, label in names.items())
    results = _results(list(by_name), found, titles)
    protocols = [
        _protocol(cuts, label, [run for run in runs if run.experiment.protocol in cuts])
        for label, cuts in by_name.items()
    ]
    shown = {
        label: people({str(k): one.runs[label][0] for k, one in enumerate(found) if label in one.runs}, titles)
        for label in by_name
    }
    tried = {variant.label: _tried(variant) for variant in found}
    watched = watched_runs([variant.runs for variant in found])
    return {
        "name": name,
        "size": runs[0].provenance.get("data", {}),
        "protocols": protocols,
        "variants": [
            {"label": variant.label, "settings": variant.settings, "tried": _number(tried[variant.label])}
            for variant in found
        ],
        "tried": tried_sentence(tried, name),
        "results": results,
        "people": shown,
        "published": publications.beside(name, found),
        "attacks": exposed(found, UPLOAD),
        "liars": exposed(found, LIAR),
        "pictures": {
            "layouts": layouts(watched, most_tsne),
            "spectra": spectra(watched),
            "weights": weights(watched),
            "merging": merging(watched),
            "trajectories": trajectories(found),
        },
        "titles": list(titles),
    }


def _tried(variant: Variant) -> Tried | None:
    first = next(iter(variant.runs.values()))[0]
    return tried_of(first.result, first.experiment)


def _number(found: Tried | None) -> int | None:
    return None if found is None else found.settings


def _results(protocols: Sequence[str], found: Sequence[Variant], titles: Titles) -> dict[str, dict[str, Model]]:
    """By protocol and by the variant's place in the list, as text."""
    known = cells({(one.label, protocol): runs for one in found for protocol, runs in one.runs.items()})
    return {
        protocol: {
            str(place): _result(one.runs[protocol], known[one.label, protocol], titles)
            for place, one in enumerate(found)
            if protocol in one.runs
        }
        for protocol in protocols
    }


def _result(runs: Sequence[SeenRun], known: PlainCells, titles: Titles) -> Model:
    return {
        "seeds": _distinct(run.experiment.seed for run in runs),
        "cuts": len({run.experiment.protocol.name for run in runs}),
        "chosen_rounds": [run.result["chosen_round"] for run in runs],
        "users": sum(run.result["users_ranked"] for run in first_of_cuts(runs)),
        "folders": [run.name for run in runs],
        "cells": known,
        "curve": curve(runs),
        "sparsity": sparsity(runs),
        "groups": groups(runs),
        "distribution": distribution(runs),
        "cost": costs(runs),
        "taste": taste(runs, titles),
    }


def _protocol(cuts: Sequence[Protocol], name: str, runs: Sequence[SeenRun]) -> Model:
    """One protocol, or several cuts of one, the first of which is pictured."""
    first = min(cuts, key=lambda cut: (cut.name != name, cut.name))
    return {
        "name": name,
        "cuts": sorted(cut.name for cut in cuts),
        "ranked": first.ranked_among,
        "chosen_on": first.selection,
        "chance": chance(runs),
        "findings": findings(cuts, name, runs),
        "picture": picture(first),
        "notes": _distinct(
            f"{run.experiment.protocol.name}: {note}" if len(cuts) > 1 else note
            for run in runs
            for note in run.result["notes"]
        ),
        "settings": _settings(cuts),
        "chosen": chosen(next(run for run in runs if run.experiment.protocol == first)),
    }


def _settings(cuts: Sequence[Protocol]) -> dict[str, Any]:
    """The settings of all cuts; where they differ, every value."""
    every = [cut.plain() for cut in cuts]
    return {
        name: value if all(one[name] == value for one in every) else [one[name] for one in every]
        for name, value in every[0].items()
    }


def _missing(runs: Sequence[SeenRun]) -> list[str]:
    """What the page cannot show for lack of files, in sentences."""
    lacking = {
        "hold no recommended items (written by an older version): what is recommended, and to whom, is not shown for "
        "them": sum(run.recommended is None for run in runs),
        "have no users.csv: the spread over users is not shown for them": sum(not run.folder.has_users for run in runs),
        "hold no audit.json (ownview compare and ownview bench write it): where no other run on the same data has one, "
        "leaks follow from the protocol's rules and are not measured": sum(run.findings is None for run in runs),
    }
    said = [f"{number} of {len(runs)} runs {what}" for what, number in lacking.items() if number]
    if not any(run.watched for run in runs):
        said.append("no run watched a client (--watch USER): there are no pictures of item tables and user vectors")
    return said


def _distinct(values: Any) -> list[Any]:
    return [value for value in dict.fromkeys(values) if value is not None]


SCRIPTS = (
    "dom.js", "scale.js", "save.js", "frame.js", "tooltip.js", "lines.js", "scatter.js", "intervals.js", "bars.js",
    "heat.js", "state.js", "findings.js", "attacks.js", "results.js", "figures.js", "lists.js", "pictures.js",
    "app.js",
)  # fmt: skip
"""In the order in which they are put together; each only uses what comes before it."""


def render(model: Mapping[str, Any]) -> str:
    """The page as text."""
    return offline_page("ownview.reports", SCRIPTS, f"Ownview: {model['title']}", model)
