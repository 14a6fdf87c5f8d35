"""What was run: one entry a run, with figures, settings and provenance, and word of runs that came to nothing.

Records of several machines are put together; every entry has its own provenance. Entries of runs that the ledger does
not ask for any more go. A run that was recorded before a setting came counts with that setting's default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.engine.machine import TOO_LARGE
from ownview.evaluation.groups import ActivityRange
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.studies.grid import Planned, folder_name
from reproduction.plan import COSTS, measured_value

FORMAT = 1
"""Of the ledger's file; a reader refuses others."""

Entry = dict[str, Any]

_ABOUT = "Every published figure, run again: made by `python -m reproduction run --all --record` and `render`."
_METRICS = ("HR@5", "NDCG@5", "HR@10", "NDCG@10")
_FROM_RESULT = ("rounds", "chosen_round", "chosen_on", "users_ranked")
_FROM_EXPERIMENT = ("method", "settings", "plugins", "federation", "measure_every")


@dataclass(frozen=True)
class Record:
    """What is known of the ledger's runs.

    Args:
        runs: entries of finished runs by name.
        left: by name, word of runs that failed, do not fit, or would take too long.
        protocols: by name, as plain values.
        not_found: by dataset, how to get it; only where no record had it.
    """

    runs: Mapping[str, Entry] = field(default_factory=dict)
    left: Mapping[str, Entry] = field(default_factory=dict)
    protocols: Mapping[str, Any] = field(default_factory=dict)
    not_found: Mapping[str, str] = field(default_factory=dict)

    def plain(self, figures: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """As the file has it, with the lines that are rendered from it."""
        return {
            "format": FORMAT,
            "about": _ABOUT,
            "data_not_found": dict(sorted(self.not_found.items())),
            "protocols": dict(sorted(self.protocols.items())),
            "runs": list(self.runs.values()),
            "left": list(self.left.values()),
            "figures": list(figures),
        }


def read_record(path: Path) -> Record:
    """Raises where the file is none, or of another format."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read as JSON: {error}") from None
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT or not {"runs", "left", "protocols", "data_not_found"} <= set(values):
        raise OutputError(f"{path}: format {found!r}, expected {FORMAT}: what `python -m reproduction run --all` wrote")
    runs, left = ({one["run"]: one for one in values[name]} for name in ("runs", "left"))
    return Record(runs, left, values["protocols"], values["data_not_found"])


def entry_of(planned: Planned, name: str, groups: Iterable[str]) -> Entry:
    """One finished run.

    Args:
        planned: what was asked, and its folder.
        name: of its seed 0.
        groups: ranges of interactions whose users published figures are about.
    """
    folder, asked = RunFolder(planned.folder), planned.experiment
    result, values = folder.read_result(), asked.resolved(asked.model()).to_dict()
    costs = {metric: measured_value(folder, metric, None) for metric in COSTS}
    measured = {metric: value for metric, value in costs.items() if value is not None}
    by_group = {
        group: {metric: measured_value(folder, metric, ActivityRange.parse(group)) for metric in _METRICS[2:]}
        for group in groups
    }
    return {
        **_about(planned, name),
        **{field: result[field] for field in _FROM_RESULT},
        "test": {metric: result["test"][metric] for metric in _METRICS if metric in result["test"]},
        **({"groups": by_group} if by_group else {}),
        **({"cost": measured} if measured else {}),
        "seconds": result["seconds"],
        "peak_memory_bytes": result["peak_memory_bytes"],
        "experiment": {field: values[field] for field in _FROM_EXPERIMENT},
        "provenance": folder.read_provenance(),
    }


def left_out(planned: Planned, name: str, reason: str, seconds: float | None = None) -> Entry:
    """Word of a run that came to nothing.

    Args:
        planned: what was asked.
        name: of its seed 0.
        reason: why, in the program's own words.
        seconds: it would take, where that is the reason.
    """
    kind = "too large" if seconds is not None or TOO_LARGE in reason else "failed"
    return {
        **_about(planned, name),
        "kind": kind,
        "reason": reason,
        **({} if seconds is None else {"seconds": seconds}),
    }


def _about(planned: Planned, name: str) -> Entry:
    return {
        "run": planned.folder.name,
        "row": name,
        "method": planned.experiment.label(),
        "data": planned.data,
        "protocol": planned.protocol,
        "seed": planned.seed,
    }


def together(records: Sequence[Record], names: Sequence[str]) -> Record:
    """One record of all: later ones count where they are of the same run; what `names` does not ask for goes.

    Args:
        records: the oldest first.
        names: of seed 0 of everything the ledger asks for, in the order of the record.
    """
    protocols = {name: plain for one in records for name, plain in one.protocols.items()}
    places = {name: place for place, name in enumerate(names)}
    runs: dict[str, Entry] = {}
    left: dict[str, Entry] = {}
    for record in records:
        for one in record.left.values():
            left[one["run"]] = one
        for one in record.runs.values():
            known = one if one["row"] in places else as_called_now(one, protocols[one["protocol"]])
            runs[known["run"]] = known
    runs = {name: one for name, one in _in_order(runs, places).items() if one["row"] in places}
    left = {name: one for name, one in _in_order(left, places).items() if name not in runs and one["row"] in places}
    used = {one["protocol"] for one in runs.values()}
    lacking = [set(record.not_found) for record in records]
    absent = set.intersection(*lacking) - {one["data"] for one in runs.values()} if lacking else set()
    how = {name: how for record in records for name, how in record.not_found.items()}
    measured = {name: plain for name, plain in protocols.items() if name in used}
    return Record(runs, left, measured, {name: how[name] for name in absent})


def _in_order(entries: Mapping[str, Entry], places: Mapping[str, int]) -> dict[str, Entry]:
    order = sorted(entries.values(), key=lambda one: (places.get(one["row"], len(places)), one["seed"], one["run"]))
    return {one["run"]: one for one in order}


def as_called_now(one: Entry, protocol: Mapping[str, Any]) -> Entry:
    """An entry under the names that its experiment has in this version: settings that came later have their default."""
    run, row = (folder_name(experiment_of({**one, "seed": seed}, protocol)) for seed in (one["seed"], 0))
    return {**one, "run": run, "row": row}


def experiment_of(one: Entry, protocol: Mapping[str, Any]) -> Experiment:
    """What an entry is a run of; settings that came later have their default."""
    values = {name: one[name] for name in ("data", "rounds", "seed")}
    return Experiment.from_dict({**one["experiment"], **values, "protocol": protocol}, f"run {one['run']}")
