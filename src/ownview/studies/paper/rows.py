"""What a paper calls its rows: as the suite does that a run lies in, or by the settings that tell runs apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ownview.base.errors import OutputError
from ownview.evaluation.named_protocols import pooled
from ownview.runs.run import Run
from ownview.runs.summaries.row_labels import row_labels
from ownview.runs.table import grouped
from ownview.studies.bench.results import read_document

Labelled = tuple[str, Run]


def labelled(runs: Sequence[Run]) -> list[Labelled]:
    """Runs with the names of their rows, rows of a suite in its order and others behind them.

    A name that stands for two different experiments in one column is not taken: they would count as seeds of one.

    Raises:
        OutputError: two runs are the same but for their folders.
    """
    plain = row_labels([run.experiment for run in runs])
    named = [_in_suite(run) or (len(runs), label) for run, label in zip(runs, plain, strict=True)]
    column = [(run.result["data"], pooled(run.experiment.protocol.name)) for run in runs]
    kinds = grouped(((name, *where), label) for (_, name), where, label in zip(named, column, plain, strict=True))
    found = [
        (place, label if len(set(kinds[name, *where])) > 1 else name, run)
        for (place, name), where, label, run in zip(named, column, plain, runs, strict=True)
    ]
    ordered = [(name, run) for _, name, run in sorted(found, key=lambda one: one[0])]
    for (name, *_), alike in grouped(
        ((name, run.result["data"], run.experiment.protocol.name, run.experiment.seed), run) for name, run in ordered
    ).items():
        if len(alike) > 1:
            first, second = (one.folder.path for one in alike[:2])
            raise OutputError(
                f"{first} and {second} are both seed {alike[0].experiment.seed} of {name}; give one of them"
            )
    return ordered


def _in_suite(run: Run) -> tuple[int, str] | None:
    """Place and name of a run's row in the results of the suite whose folder it lies in; None where there are none."""
    folder = run.folder.path.resolve()
    written = folder.parents[1] / "results.json"
    return _rows(written).get(folder.name) if folder.parent.name == "runs" and written.is_file() else None


@cache
def _rows(results: Path) -> dict[str, tuple[int, str]]:
    entries = read_document(results)["runs"]
    order = {name: place for place, name in enumerate(dict.fromkeys(one["method"] for one in entries))}
    return {one["run"]: (order[one["method"]], one["method"]) for one in entries}
