"""The report: published figures against those reached here, as Markdown for people and as plain values for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ownview.base.display.amounts import counted
from ownview.base.files import write_json, write_text
from ownview.base.version import __version__
from ownview.evaluation.findings import Finding, by_rule, fired
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.protocol import Protocol
from ownview.runs.files.folder import RunFolder
from ownview.runs.table import OverSeeds, grouped, table_lines
from reproduction.papers import CITATIONS
from reproduction.plan import Line, Options, Reached, Status

LEAK = (
    "Under the papers' protocol held-out items never serve as training negatives, so a model can find them by memory "
    "alone. The column `honest` has the same settings without that, ranked among all items."
)


@dataclass(frozen=True)
class Report:
    """Everything a reader must know.

    Args:
        paper: as in `CITATIONS`.
        lines: those of one table and dataset together.
        options: what was asked.
        quick: a first look that reproduces nothing.
        command: how to make it again.
    """

    paper: str
    lines: Sequence[Line]
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
        return any(line.honest for line in self.lines)

    def tables(self) -> dict[str, dict[str, list[Line]]]:
        """Lines by table and dataset."""
        tables = grouped((line.one.table, line) for line in self.lines)
        return {name: grouped((line.one.data, line) for line in lines) for name, lines in tables.items()}

    def summary(self) -> str:
        """How many figures came out, and how near."""
        counts = Counter(str(line.status) for line in self.lines for _ in line.reached)
        words = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        shares = [
            abs(one.difference)
            for line in self.lines
            for one in line.reached
            if one.difference is not None and "@" in one.figure.metric  # not bytes or seconds
        ]
        near = f" Mean absolute difference {mean(shares):.4f}." if shares and not self.warning else ""
        return f"{counts.total()} published figures: {words}.{near}"


def how_measured(lines: Sequence[Line]) -> str:
    """In one sentence: metrics, protocol, ranking and choice of the round of one table."""
    metrics = " / ".join(lines[0].metrics)
    found = {line.setup.protocol.name: line.setup.protocol for line in lines if line.setup is not None}
    if lines[0].one.candidates == "-" or not found:
        return metrics
    protocol = next(iter(found.values()))
    how = f"ranked among {protocol.ranked_among}, round chosen on {protocol.selection}"
    return f"{metrics}; protocol {', '.join(found)}: {how}"


def warnings(report: Report) -> dict[str, list[Finding]]:
    """By protocol in use: what its settings alone say against the figures measured with it."""
    found = {protocol.name: fired(by_rule(protocol)) for protocol in _protocols(report)}
    return {name: findings for name, findings in found.items() if findings}


def line_texts(line: Line) -> dict[str, list[str]]:
    """By column one text a metric, or one for all."""
    known = line.status is Status.MEASURED
    return {
        "published": [f"{one.figure.value:.4f}" for one in line.reached],
        "here": [_text(one.here) for one in line.reached] if known else [str(line.status)],
        "difference": [_signed(one) for one in line.reached] if known else ["-"],
        "honest": [_text(one.honest) for one in line.reached] if any(one.honest for one in line.reached) else ["-"],
    }


def reasons(lines: Sequence[Line]) -> list[str]:
    """Why figures are absent, each reason once, with the methods it is about."""
    methods = grouped(((str(line.status), line.reason), line.one.method) for line in lines if line.reason)
    return [f"{status}: {', '.join(dict.fromkeys(named))} ({why})" for (status, why), named in methods.items()]


def markdown(report: Report, *, settings: bool = True) -> str:
    """The report for people, with or without every row's settings."""
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
        every = [line for lines_of_data in by_data.values() for line in lines_of_data]
        lines += ["", f"## Table {table}", "", how_measured(every) + "."]
        for data, found in by_data.items():
            rows = [[line.one.method, *map(" / ".join, line_texts(line).values())] for line in found]
            lines += ["", f"### {data}", "", *table_lines(["method", *line_texts(found[0])], rows)]
        lines += [""] * bool(reasons(every)) + [f"- {reason}" for reason in reasons(every)]
    lines += ["", *_settings_section(report)] if settings else []
    return "\n".join([*lines, "", *_protocol_section(report), ""])


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
        "findings": {name: [one.to_dict() for one in findings] for name, findings in warnings(report).items()},
        "summary": report.summary(),
        "lines": [_plain(line) for line in report.lines],
    }


def write(report: Report, folder: Path) -> None:
    """report.md and report.json."""
    write_text(folder / "report.md", markdown(report))
    write_json(folder / "report.json", to_dict(report))


def _plain(line: Line) -> dict[str, Any]:
    figure, setup = line.one, line.setup
    return {
        **{name: getattr(figure, name) for name in ("table", "data", "method", "candidates")},
        "status": str(line.status),
        "reason": line.reason,
        "dataset": setup and setup.dataset,
        "inactive": list(setup.inactive) if setup and setup.inactive else None,
        "protocol": setup and setup.protocol.name,
        "experiment": _experiment(line),
        "figures": [
            {
                "metric": one.figure.metric,
                "published": one.figure.value,
                "here": one.here and one.here.to_dict(),
                "difference": one.difference,
                "honest": one.honest and one.honest.to_dict(),
            }
            for one in line.reached
        ],
        "runs": [folder.name for _, folder in line.here],
        "honest_runs": [folder.name for _, folder in line.honest],
        "chosen_rounds": [_chosen(folder) for _, folder in line.here],
    }


def _experiment(line: Line) -> dict[str, Any] | None:
    """What was asked for, every setting written out; what the settings file says where it was not run."""
    if line.here:
        asked = line.here[0][0]
        values = asked.resolved(asked.model()).to_dict()
        return {name: values[name] for name in ("method", "settings", "plugins", "federation", "rounds")}
    return None if line.setup is None else dict(line.setup.experiment)


def _settings_section(report: Report) -> list[str]:
    rows = [
        (line.one.data, line.one.method, _words(values))
        for line in report.lines
        if line.here and (values := _experiment(line)) is not None
    ]
    return ["## Settings", "", *table_lines(["data", "method", "settings"], dict.fromkeys(rows))]


def _words(values: dict[str, Any]) -> str:
    models = [(values["method"], values["settings"]), *((one["name"], one["settings"]) for one in values["plugins"])]
    parts = [f"{name}: {_pairs(settings)}" for name, settings in models]
    return "; ".join([*parts, f"federation: {_pairs(values['federation'])}", f"{values['rounds']} rounds"])


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _protocol_section(report: Report) -> list[str]:
    findings = warnings(report)
    lines = ["## Protocols", ""]
    for protocol in _protocols(report):
        differs = {name: value for name, value in protocol.plain().items() if value != HONEST.plain()[name]}
        differs.pop("name", None)
        lines.append(f"- `{protocol.name}`: " + (_pairs(differs) if differs else "Ownview's default") + ".")
        lines += [f"  - **{one.probe}**: {one.sentence}." for one in findings.get(protocol.name, ())]
    return [*lines, "", "What is not named is as in `honest`."]


def _protocols(report: Report) -> list[Protocol]:
    asked = [task[0].protocol for line in report.lines for task in line.runs]
    return list({protocol.name: protocol for protocol in asked}.values())


def _provenance(report: Report, name: str) -> list[str]:
    """Every value the runs have of it; more than one where runs of an earlier time were taken up."""
    every = [RunFolder(folder).read_provenance() for line in report.lines for _, folder in line.runs]
    found = {one.get("machine", {}).get("device") if name == "device" else one.get(name) for one in every}
    return sorted(str(value) for value in found - {None})


def _chosen(folder: Path) -> int | None:
    return int(RunFolder(folder).read_result()["chosen_round"]) if RunFolder(folder).finished else None


def _text(measure: OverSeeds | None) -> str:
    return "-" if measure is None else str(measure)


def _signed(one: Reached) -> str:
    return "-" if one.difference is None else f"{round(one.difference, 4) + 0.0:+.4f}"  # + 0.0: no -0.0000
