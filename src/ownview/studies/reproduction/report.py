"""The report: published figures against those reached here, as Markdown for people and as plain values for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from ownview.base.files import write_json, write_text
from ownview.base.version import __version__
from ownview.evaluation.findings import Finding, by_rule, fired
from ownview.evaluation.protocol import HONEST, Protocol
from ownview.runs.cells import OverSeeds
from ownview.runs.folder import RunFolder
from ownview.studies.markdown import counted, table_lines
from ownview.studies.reproduction.outcome import Reached, Result
from ownview.studies.reproduction.plan import Options, Status
from ownview.studies.reproduction.published import CITATIONS

LEAK = (
    "Under the papers' protocol held-out items never serve as training negatives, so a model can find them by memory "
    "alone. The column `honest` has the same settings without that, ranked among all items."
)


class LineTexts(NamedTuple):
    """A line of a table as texts; each of the last four holds one text a metric, or one for all."""

    method: str
    published: tuple[str, ...]
    here: tuple[str, ...]
    difference: tuple[str, ...]
    honest: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """Everything a reader must know.

    Args:
        paper: as in `CITATIONS`.
        results: line by line, those of one table and dataset together.
        options: what was asked.
        quick: a first look that reproduces nothing.
        command: how to make it again.
    """

    paper: str
    results: Sequence[Result]
    options: Options
    quick: bool
    command: str

    @property
    def warning(self) -> str:
        """What marks a report that does not follow the paper; empty where it does."""
        seeds, rounds = self.options.seeds, self.options.rounds
        if self.quick:
            return f"QUICK LOOK: {rounds} rounds and {counted(seeds, 'seed')} only. These figures reproduce nothing."
        return f"REDUCED: {rounds} rounds instead of the paper's." if rounds is not None else ""

    @property
    def honest(self) -> bool:
        """Whether anything was run under the honest protocol."""
        return any(result.line.honest for result in self.results)

    def tables(self) -> dict[str, dict[str, list[Result]]]:
        """Results by table and dataset."""
        found: dict[str, dict[str, list[Result]]] = {}
        for result in self.results:
            figure = result.line.one
            found.setdefault(figure.table, {}).setdefault(figure.data, []).append(result)
        return found

    def summary(self) -> str:
        """How many figures came out, and how near."""
        counts = Counter(str(result.status) for result in self.results for _ in result.comparisons)
        words = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        shares = [
            abs(one.difference)
            for result in self.results
            for one in result.comparisons
            if one.difference is not None and "@" in one.figure.metric  # not bytes or seconds
        ]
        near = f" Mean absolute difference {mean(shares):.4f}." if shares and not self.warning else ""
        return f"{counts.total()} published figures: {words}.{near}"


def how_measured(results: Sequence[Result]) -> str:
    """In one sentence: metrics, protocol, ranking and choice of the round of one table."""
    metrics = " / ".join(figure.metric for figure in results[0].line.figures)
    found = {r.line.setup.protocol.name: r.line.setup.protocol for r in results if r.line.setup is not None}
    if results[0].line.one.candidates == "-" or not found:
        return metrics
    protocol = next(iter(found.values()))
    how = f"ranked among {protocol.ranked_among}, round chosen on {protocol.selection}"
    return f"{metrics}; protocol {', '.join(found)}: {how}"


def warnings(report: Report) -> dict[str, list[Finding]]:
    """By protocol in use: what its settings alone tell against the figures measured with it."""
    found = {protocol.name: fired(by_rule(protocol)) for protocol in _protocols(report)}
    return {name: told for name, told in found.items() if told}


def line_texts(result: Result) -> LineTexts:
    """One line as texts."""
    made = result.comparisons
    known = result.status is Status.MEASURED
    return LineTexts(
        result.line.one.method,
        tuple(f"{one.figure.value:.4f}" for one in made),
        tuple(_text(one.here) for one in made) if known else (str(result.status),),
        tuple(_signed(one) for one in made) if known else ("-",),
        tuple(_text(one.honest) for one in made) if any(one.honest for one in made) else ("-",),
    )


def reasons(results: Sequence[Result]) -> list[str]:
    """Why figures are absent, each reason once, with the methods it is about."""
    methods: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.reason:
            named = methods.setdefault((str(result.status), result.reason), [])
            named += [result.line.one.method] * (result.line.one.method not in named)
    return [f"{status}: {', '.join(named)} ({reason})" for (status, reason), named in methods.items()]


def markdown(report: Report) -> str:
    """The whole report for people."""
    options = report.options
    revisions, devices = _provenance(report, "revision"), _provenance(report, "device")
    lines = [f"# {report.paper}: published figures, and the same runs here", ""]
    if report.warning:
        lines += [f"> **{report.warning}**", ""]
    lines += [
        f"Paper: {CITATIONS[report.paper]}.",
        f"Made by `{report.command}` with Ownview {__version__}, revision {' and '.join(revisions) or 'unknown'}, "
        f"on {' and '.join(devices)}; {counted(options.seeds, 'seed')}"
        + (", mean ± standard deviation." if options.seeds > 1 else "."),
        "Difference: here minus published." + (f" {LEAK}" if report.honest else ""),
        "",
        report.summary(),
    ]
    for table, by_data in report.tables().items():
        every = [result for results in by_data.values() for result in results]
        lines += ["", f"## Table {table}", "", how_measured(every) + "."]
        for data, results in by_data.items():
            lines += ["", f"### {data}", "", *_markdown_table(results)]
        lines += [""] * bool(reasons(every)) + [f"- {reason}" for reason in reasons(every)]
    return "\n".join([*lines, "", *_settings_section(report), "", *_protocol_section(report), ""])


def to_dict(report: Report) -> dict[str, Any]:
    """The whole report for programs."""
    options = report.options
    return {
        "paper": report.paper,
        "citation": CITATIONS[report.paper],
        "command": report.command,
        "quick": report.quick,
        "warning": report.warning,
        "seeds": list(range(options.seeds)),
        "rounds_override": options.rounds,
        "ownview": __version__,
        "revisions": _provenance(report, "revision"),
        "devices": _provenance(report, "device"),
        "protocols": {one.name: one.plain() for one in _protocols(report)},
        "findings": {name: [one.to_dict() for one in told] for name, told in warnings(report).items()},
        "summary": report.summary(),
        "lines": [_line(result) for result in report.results],
    }


def write(report: Report, folder: Path) -> None:
    """report.md and report.json."""
    write_text(folder / "report.md", markdown(report))
    write_json(folder / "report.json", to_dict(report))


def _line(result: Result) -> dict[str, Any]:
    line, figure = result.line, result.line.one
    return {
        "table": figure.table,
        "data": figure.data,
        "method": figure.method,
        "candidates": figure.candidates,
        "status": str(result.status),
        "reason": result.reason,
        "dataset": None if line.setup is None else line.setup.dataset,
        "inactive": None if line.setup is None or line.setup.inactive is None else list(line.setup.inactive),
        "protocol": None if line.setup is None else line.setup.protocol.name,
        "experiment": _experiment(result),
        "figures": [
            {
                "metric": one.figure.metric,
                "published": one.figure.value,
                "here": one.here and one.here.to_dict(),
                "difference": one.difference,
                "honest": one.honest and one.honest.to_dict(),
            }
            for one in result.comparisons
        ],
        "runs": [folder.name for _, folder in line.here],
        "honest_runs": [folder.name for _, folder in line.honest],
        "chosen_rounds": [_chosen(folder) for _, folder in line.here],
    }


def _experiment(result: Result) -> dict[str, Any] | None:
    """What was asked for, every setting written out; what the settings file says where it was not run."""
    if result.line.here:
        asked = result.line.here[0][0]
        values = asked.resolved(asked.model()).to_dict()
        return {name: values[name] for name in ("method", "settings", "plugins", "federation", "rounds")}
    return None if result.line.setup is None else dict(result.line.setup.experiment)


def _markdown_table(results: Sequence[Result]) -> list[str]:
    rows = [line_texts(result) for result in results]
    texts = [[row.method, *(" / ".join(one) for one in row[1:])] for row in rows]
    return table_lines(["method", "published", "here", "difference", "honest"], texts)


def _settings_section(report: Report) -> list[str]:
    rows = [
        (result.line.one.data, result.line.one.method, _words(values))
        for result in report.results
        if result.line.here and (values := _experiment(result)) is not None
    ]
    return ["## Settings", "", *table_lines(["data", "method", "settings"], dict.fromkeys(rows))]


def _words(values: dict[str, Any]) -> str:
    models = [(values["method"], values["settings"]), *((one["name"], one["settings"]) for one in values["plugins"])]
    parts = [f"{name}: {_pairs(settings)}" for name, settings in models]
    return "; ".join([*parts, f"federation: {_pairs(values['federation'])}", f"{values['rounds']} rounds"])


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _protocol_section(report: Report) -> list[str]:
    told = warnings(report)
    lines = ["## Protocols", ""]
    for protocol in _protocols(report):
        differs = {name: value for name, value in protocol.plain().items() if value != HONEST.plain()[name]}
        differs.pop("name", None)
        lines.append(f"- `{protocol.name}`: " + (_pairs(differs) if differs else "Ownview's default") + ".")
        lines += [f"  - **{one.probe}**: {one.sentence}." for one in told.get(protocol.name, ())]
    return [*lines, "", "What is not named is as in `honest`."]


def _protocols(report: Report) -> list[Protocol]:
    asked = [task[0].protocol for result in report.results for task in (*result.line.here, *result.line.honest)]
    return list({protocol.name: protocol for protocol in asked}.values())


def _provenance(report: Report, name: str) -> list[str]:
    """Every value the runs have of it; more than one where runs of an earlier time were taken up."""
    folders = {folder for result in report.results for _, folder in (*result.line.here, *result.line.honest)}
    found: set[str] = set()
    for folder in sorted(folders):
        values = RunFolder(folder).read_provenance()
        value = values.get("machine", {}).get("device") if name == "device" else values.get(name)
        found |= {str(value)} if value is not None else set()
    return sorted(found)


def _chosen(folder: Path) -> int | None:
    return int(RunFolder(folder).read_result()["chosen_round"]) if RunFolder(folder).finished else None


def _text(measure: OverSeeds | None) -> str:
    return "-" if measure is None else str(measure)


def _signed(one: Reached) -> str:
    return "-" if one.difference is None else f"{round(one.difference, 4) + 0.0:+.4f}"  # + 0.0: no -0.0000
