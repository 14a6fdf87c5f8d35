"""What came out of a suite: one JSON document with an entry for every run and its provenance, and tables of it.

The document has nothing in it that differs from one time to the next (no times of day, no durations, no memory): a
suite that was killed and started again ends with the same bytes. `bench.results_page` makes Markdown of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.base.files import drop_unfinished, make_folder, write_text
from ownview.base.json_shapes import Maybe, TableOf, misfit
from ownview.base.json_text import parse_json
from ownview.evaluation.comparison import Cell, Mark
from ownview.evaluation.findings import Finding, by_rule, fired
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import PROTOCOLS, pooled
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.findings.audits import kept
from ownview.runs.run import Run, open_run
from ownview.runs.summaries.tried_settings import Tried, tried_of
from ownview.runs.table import (
    LEGEND,
    LEGEND_BEFORE,
    LEGEND_BY_QUESTION,
    Comparison,
    RowKey,
    averaged,
    compared,
    grouped,
    mean_over_runs,
    measured,
    with_yardsticks,
)
from ownview.studies.bench.renaming import as_called_now
from ownview.studies.bench.suite import Suite
from ownview.studies.grid import Planned

FORMAT = 2
"""Of the document; a reader refuses others."""

LEDGER, UPLOADS, ANCHORS = "ledger.json", "uploads.json", "anchors.json"
"""Records beside those of suites; see `reproduction/` and `bench.anchors`."""

_CELL: dict[str, Any] = {"data": str, "protocol": str, "method": str}
_DOCUMENT = {
    "protocols": {},
    "runs": [{**_CELL, "run": str, "seed": int, "rounds": int, "experiment": {"settings": {}}, "test": TableOf(float)}],
    "comparison": [{**_CELL, "metric": str}],
    "failures": [{**_CELL, "run": str}],
    "not_compared": Maybe([str]),
}
"""What a document must hold at least; a file of a stranger may hold anything."""

_ROUNDING = 1e-6
"""Means that differ by no more are equal: cuts may have been added up in another order."""

Document = dict[str, Any]
Entry = dict[str, Any]

NO_TIMES = "no times"
"""Stands in the cell of a run that was refused because its data has none."""

_FROM_RESULT = (
    *("rounds", "chosen_round", "chosen_on", "users_ranked", "tied_users", "test", "interval_95", "notes"),
    *("bytes_down_per_client", "bytes_up_per_client", "settings_tried", "tried_on", "validation", "blend"),
)


_FROM_CELL = (
    *("mean", "spread", "low", "high", "seeds", "users", "persons"),
    *("mark", "not_above", "p_corrected", "against_best"),
)


def document(suite: Suite, planned: Sequence[Planned], failures: Mapping[Path, str]) -> Document:
    """Everything the finished runs have recorded, in the order of the plan.

    Args:
        suite: they belong to.
        planned: the runs.
        failures: folders of runs that failed, and why.
    """
    protocols = {one.protocol: one.experiment.protocol for one in planned}
    finished = [one for one in planned if one.folder not in failures]
    data = dict.fromkeys(one.data for one in finished)
    without = [sentence for name in data for sentence in _not_compared(suite, name, finished)]
    return {
        "format": FORMAT,
        "suite": suite.name,
        **({"file": suite.file} if suite.file else {}),
        "title": suite.title,
        "about": suite.about,
        "protocols": {name: protocol.plain() for name, protocol in protocols.items()},
        "runs": [entry(one) for one in finished],
        "comparison": [one for name in data for one in _compared(suite, name, finished)],
        **({"not_compared": without} if without else {}),
        "failures": [{**_about(one), "reason": failures[one.folder]} for one in planned if one.folder in failures],
    }


def entry(one: Planned) -> Entry:
    """One finished run."""
    folder = RunFolder(one.folder)
    result, values = folder.read_result(), one.experiment.resolved(one.experiment.model()).to_dict()
    sampled = one.experiment.protocol.candidates
    known = kept(folder, open_run(one.folder).experiment) or by_rule(one.experiment.protocol)
    return {
        **_about(one),
        "ranked_among": sampled + 1 if sampled else "all",
        **{name: result[name] for name in _FROM_RESULT if name in result},
        "experiment": {name: values[name] for name in ("method", "settings", "plugins", "federation")},
        "warnings": [{"probe": found.probe, "sentence": found.sentence} for found in fired(known)],
        "provenance": folder.read_provenance(),
    }


def _compared(suite: Suite, data: str, finished: Sequence[Planned]) -> list[Entry]:
    """Interval, mark against the best, p and effect sizes of every cell of one dataset in all that was measured."""
    rows = _rows(data, finished)
    also = {row.name: row.beside for row in suite.rows if row.beside}
    return [
        {
            **{"data": data, "protocol": protocol, "metric": metric, "method": method},
            **{name: cell.to_dict()[name] for name in _FROM_CELL},
            **({} if cell.beside is None else {"beside": cell.to_dict()["beside"]}),
        }
        for (method, protocol, metric), cell in compared(rows, (*HEADLINE, *suite.metrics), also).items()
    ]


def _rows(data: str, finished: Sequence[Planned]) -> dict[RowKey, list[Run]]:
    return grouped(((one.row, pooled(one.protocol)), open_run(one.folder)) for one in finished if one.data == data)


def _not_compared(suite: Suite, data: str, finished: Sequence[Planned]) -> list[str]:
    """In which of the suite's further metrics rows are not compared, in words, by protocol."""
    known = measured(_rows(data, finished), suite.metrics)
    return [
        f"not compared in {name}: {data}, {protocol}: not every run has measured it"
        for protocol, there in known.items()
        for name in suite.metrics
        if name not in there
    ]


def combined(suite: Suite, whole: Sequence[Planned], new: Document, old: Document | None) -> Document:
    """A record of the whole suite: new entries, and older ones of runs that are still what the suite asks for.

    So a suite may be recorded in parts, on several machines; every entry has its own provenance. Word of runs that
    failed stays until they are made.

    Args:
        suite: as declared.
        whole: all its runs.
        new: what was run now.
        old: what the record has had so far.
    """
    old = None if old is None else {**old, "runs": as_called_now(old["runs"], whole, old["protocols"])}
    asked = {one.folder.name for one in whole}
    strange = [one["run"] for one in new["runs"] if one["run"] not in asked]
    if strange:
        raise OutputError(
            f"only runs as suite {suite.name} declares them are recorded, not {strange[0]}; "
            "give no more --seeds than it has"
        )
    found = {one["run"]: one for one in [*([] if old is None else old["runs"]), *new["runs"]]}
    protocols = {**({} if old is None else old["protocols"]), **new["protocols"]}
    names = {one["protocol"] for one in found.values()}
    runs = [{**found[one.folder.name], **_about(one)} for one in whole if one.folder.name in found]
    failures = {one["run"]: one for one in [*([] if old is None else old["failures"]), *new["failures"]]}
    newer = _still(new, runs)
    again = {_column(one) for one in newer}
    older = [] if old is None else [one for one in _still(old, runs) if _column(one) not in again]
    return {
        **new,
        **({"asked_for": len(whole)} if len(runs) < len(whole) else {}),
        "protocols": {one.protocol: protocols[one.protocol] for one in whole if one.protocol in names},
        "runs": runs,
        "comparison": [*newer, *older],
        "failures": [
            {**failures[one.folder.name], **_about(one)}
            for one in whole
            if one.folder.name in failures and one.folder.name not in found
        ],
    }


def _column(one: Entry) -> tuple[str, str]:
    """Dataset and protocol of a run or of a compared cell, all cuts of a protocol as one."""
    return one["data"], pooled(one["protocol"])


def _still(made: Document, runs: Sequence[Entry]) -> list[dict[str, Any]]:
    """Compared cells that hold for the runs of a record.

    A cell holds where its row has the very runs that it was compared with. A column holds where its best row does, and
    no row beside it that is unmarked, being made at another time, has a higher mean. One row alone is not compared.
    Cells of early records, which have no mean, take that of their runs.
    """
    own = {(one["run"], one["method"]): one for one in made["runs"]}  # one run may stand behind several rows
    rows = grouped(((*_column(one), one["method"]), one) for one in runs)
    theirs = grouped(((*_column(one), one["method"]), one) for one in made["runs"])
    same = {row for row, found in rows.items() if all(own.get((one["run"], one["method"])) == one for one in found)}
    columns = grouped(((*_column(one), one["metric"]), one) for one in made["comparison"])
    held: list[dict[str, Any]] = []
    for (data, protocol, metric), cells in columns.items():
        beside = [mean_over_runs(found, metric) for row, found in rows.items() if row[:-1] == (data, protocol)]
        means = {
            row: float(one["mean"]) if "mean" in one else mean_over_runs(theirs[data, protocol, row], metric)
            for one in cells
            for row in [one["method"]]
        }
        best = max(means, key=means.__getitem__)
        if (data, protocol, best) in same and max(beside) <= means[best] + _ROUNDING:
            marked = [_paired(one, same) for one in cells if (data, protocol, one["method"]) in same]
            held += marked if len(marked) > 1 else []
    return held


def _paired(cell: Entry, same: Collection[tuple[str, str, str]]) -> Entry:
    """The cell; without the row it was compared with besides, where that has other runs now."""
    beside = cell.get("beside")
    if beside is None or (*_column(cell), beside["label"]) in same:
        return cell
    return {name: value for name, value in cell.items() if name != "beside"}


def write_document(path: Path, values: Document) -> None:
    """Whole or not at all. Makes the folder if need be, and removes what a process killed in the middle has left."""
    make_folder(path.parent)
    drop_unfinished(path)
    write_text(path, document_text(values))


def document_text(values: Mapping[str, Any]) -> str:
    """JSON with one line for every value of a list, so that a change of one run is a change of one line."""
    lines = []
    for name, value in values.items():
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if isinstance(value, list) and value:
            every = (json.dumps(one, allow_nan=False, ensure_ascii=False) for one in value)
            text = "[\n" + ",\n".join(f"    {one}" for one in every) + "\n  ]"
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_document(path: Path) -> Document:
    """Raises where the file is none, or of another format."""
    try:
        values = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read as JSON: {error}") from None
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT:
        raise OutputError(f"{path}: format {found!r}, expected {FORMAT}: results that `ownview bench` wrote")
    if why := misfit(values, _DOCUMENT):
        raise OutputError(f"{path}: is damaged: {why}; bring a sound copy back")
    return dict(values)


def _about(one: Planned) -> Entry:
    names = {"run": one.folder.name, "method": one.row}
    return {**names, "data": one.data, "protocol": one.protocol, "seed": one.seed}


def tables(values: Document) -> list[Comparison]:
    """One a dataset, in the document's order."""
    every: list[Entry] = [*values["runs"], *values["failures"]]
    return [_table(data, values, every) for data in dict.fromkeys(one["data"] for one in every)]


def _table(data: str, values: Document, every: Sequence[Entry]) -> Comparison:
    here = [one for one in values["runs"] if one["data"] == data]
    among = {name: Protocol.of(plain).ranked_among for name, plain in values["protocols"].items()}
    ranked = {pooled(one["protocol"]): among[one["protocol"]] for one in here}
    protocols = {name: ranked[name] for name in map(pooled, values["protocols"]) if name in ranked}
    methods = tuple(dict.fromkeys(one["method"] for one in every if one["data"] == data))
    compared = {
        (one["method"], one["protocol"], one["metric"]): one for one in values["comparison"] if one["data"] == data
    }
    figures = {}
    for method in methods:
        for protocol in protocols:
            same = [one for one in here if (one["method"], pooled(one["protocol"])) == (method, protocol)]
            for key in [(method, protocol, metric) for metric in HEADLINE if same]:
                cell, row = averaged(method, same, key[2]), compared.get(key)
                # Interval and mark of the comparison; where there is none, the seeds' own intervals.
                figures[key] = cell if row is None else _as_compared(cell, row)
    failed_here = [one for one in values["failures"] if one["data"] == data]
    # Every refusal for lack of times has these words.
    absent = {(one["method"], pooled(one["protocol"])): NO_TIMES for one in failed_here if NO_TIMES in one["reason"]}
    findings = {name: (*_outdated(values["protocols"], name), *_findings(here, name)) for name in protocols}
    firsts = {one["method"]: one for one in reversed(here)}
    tried = {method: _tried(firsts[method]) for method in methods if method in firsts}
    unvalidated = tuple(method for method in firsts if "validation" not in firsts[method])
    return Comparison(
        data,
        methods,
        protocols,
        figures,
        findings,
        tried=tried,
        legend=with_yardsticks(_legend(compared.values()), figures),
        absent=absent,
        unvalidated=unvalidated,
    )


def _legend(compared: Collection[Entry]) -> str:
    """How the marks of a record were made; records keep those that they were made with."""
    if any("p_holm" in one for one in compared):
        return LEGEND_BEFORE
    return LEGEND if all("persons" in one for one in compared) else LEGEND_BY_QUESTION


def _as_compared(cell: Cell, row: Entry) -> Cell:
    """A cell with what the comparison says of it; cuts that were pooled have a mean of their own there."""
    asked = ("mean", "spread", "low", "high", "seeds", "users", "persons", "not_above")
    known = {name: row[name] for name in asked if name in row}
    return replace(cell, **known, mark=Mark(row["mark"]))


def _tried(one: Entry) -> Tried | None:
    return tried_of(one, Experiment.from_dict({"data": one["data"], **one["experiment"]}, f"run {one['run']}"))


def outdated(protocols: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names of the protocols of a record that mean something else in this version."""
    return [
        name
        for name, plain in protocols.items()
        if pooled(name) in PROTOCOLS and Protocol.of(plain) != protocol_by_name(name)
    ]


def _outdated(protocols: Mapping[str, Mapping[str, Any]], column: str) -> list[Finding]:
    old = [name for name in outdated(protocols) if pooled(name) == column]
    sentence = f"recorded under an earlier definition of {', '.join(old)}; figures of this version may differ"
    return [Finding("outdated", True, sentence)] if old else []


def _findings(runs: Sequence[Entry], protocol: str) -> tuple[Finding, ...]:
    warnings = (found for one in runs if pooled(one["protocol"]) == protocol for found in one["warnings"])
    return tuple(dict.fromkeys(Finding(one["probe"], True, one["sentence"]) for one in warnings))


def suites_in(folder: Path) -> list[Path]:
    """Files of a folder that suites have written: they name their suite, other records beside them name none."""
    return [path for path in sorted(folder.glob("*.json")) if _names_a_suite(path)]


def _names_a_suite(path: Path) -> bool:
    """Whether a record is a suite's, or cannot be read, which its reader then says."""
    try:
        values = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return isinstance(values, dict) and "suite" in values


def read_all(folder: Path) -> dict[str, Document]:
    """Every record of a folder by suite; those of no suite are left out."""
    found = [read_document(path) for path in suites_in(folder)]
    if not found:
        raise OutputError(f"{folder}: no results; make some with: ownview bench SUITE --record {folder}")
    return {one["suite"]: one for one in found}
