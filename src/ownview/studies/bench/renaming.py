"""Recorded runs under the names that they have in this version: settings that came later have their default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ownview.blends.blend import Part
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.studies.grid import Planned

_DECIDES = ("method", "settings", "plugins", "federation")


def as_called_now(
    runs: Iterable[dict[str, Any]], whole: Sequence[Planned], protocols: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The entries of a record; those that are what a planned run asks for, under its name.

    Args:
        runs: entries of a record.
        whole: all runs of its suite, as it is declared now.
        protocols: of the record, by name; a run of one that means something else now is not what is asked for.
    """
    asked_now = {one.protocol: one.experiment.protocol for one in whole}
    changed = {name for name, plain in protocols.items() if name in asked_now and Protocol.of(plain) != asked_now[name]}
    names = {one.folder.name for one in whole}
    asked = {(one.row, one.data, one.protocol, one.seed): one for one in whole}
    found = list(runs)
    called: dict[str, str] = {}
    # Blends come after all others, because they name the runs that they blend.
    for place, entry in sorted(enumerate(found), key=lambda pair: "parts" in pair[1]["experiment"]["settings"]):
        planned = asked.get((entry["method"], entry["data"], entry["protocol"], entry["seed"]))
        if planned is None or entry["run"] in names or entry["protocol"] in changed:
            continue
        known = _with_parts(entry["experiment"], planned, called)
        if _same({**entry, "experiment": known}, planned):
            called[entry["run"]] = planned.folder.name
            found[place] = {**entry, "run": planned.folder.name, "experiment": known}
    return found


def _with_parts(known: dict[str, Any], planned: Planned, called: Mapping[str, str]) -> dict[str, Any]:
    """An experiment whose parts, where they are runs that have another name now, are written as they are planned."""
    settings = known["settings"]
    if "parts" not in settings:
        return known
    wanted: Any = planned.experiment.settings.get("parts", ())
    texts = {Part.read(text).folder: text for text in wanted}
    parts = [texts.get(called.get(Part.read(text).folder, ""), text) for text in settings["parts"]]
    return {**known, "settings": {**settings, "parts": parts}}


def _same(entry: dict[str, Any], planned: Planned) -> bool:
    """Whether a run was made as asked, every default written out; a blend's parts count by the names of their runs."""
    known, asked = entry["experiment"], planned.experiment
    if entry["rounds"] not in (asked.rounds, asked.rounds_needed):
        return False
    made = Experiment.from_dict({"data": entry["data"], **known}, f"run {entry['run']}")
    written, wanted = (one.resolved(one.model()).to_dict() for one in (made, asked))
    return all(written[name] == wanted[name] for name in _DECIDES)
