"""Recorded runs under the names that they have in this version: settings that came later have their default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ownview.runs.experiment import Experiment
from ownview.studies.grid import Planned

_DECIDES = ("method", "settings", "plugins", "federation")


def as_called_now(runs: Iterable[dict[str, Any]], whole: Sequence[Planned]) -> list[dict[str, Any]]:
    """The entries of a record; those that are what a planned run asks for, under its name.

    Args:
        runs: entries of a record.
        whole: all runs of its suite, as it is declared now.
    """
    names = {one.folder.name for one in whole}
    asked = {(one.row, one.data, one.protocol, one.seed): one for one in whole}
    found = []
    for entry in runs:
        planned = asked.get((entry["method"], entry["data"], entry["protocol"], entry["seed"]))
        if planned is not None and entry["run"] not in names and _same(entry, planned):
            found.append({**entry, "run": planned.folder.name})
        else:
            found.append(entry)
    return found


def _same(entry: dict[str, Any], planned: Planned) -> bool:
    """Whether a run was made as asked, every default written out; a blend's parts count by the names of their runs."""
    known, asked = entry["experiment"], planned.experiment
    if entry["rounds"] not in (asked.rounds, asked.rounds_needed):
        return False
    made = Experiment.from_dict({"data": entry["data"], **known}, f"run {entry['run']}")
    written, wanted = (one.resolved(one.model()).to_dict() for one in (made, asked))
    return all(written[name] == wanted[name] for name in _DECIDES)
