"""The ledger as a page: counts by paper, what it comes to, and one line a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ownview.base.display.amounts import counted
from ownview.runs.table import grouped, table_lines
from reproduction.ledger.lines import Line, Seeds, UnseenLine, Verdict
from reproduction.ledger.record import Record
from reproduction.papers import CITATIONS
from reproduction.plan import COSTS

_INTRO = (
    "Every figure that the five papers print, and what comes out here. Made by `python -m reproduction render` "
    "from what `python -m reproduction run --all --record results` has written ([how](reproduce.md)); change "
    "neither by hand."
)
_READING = (
    "**Published** is the paper's figure. **Here** is the same row run again as its paper measured: mean ± standard "
    "deviation over seeds, in brackets how many seeds; all that were recorded count, none is chosen, and rows of main "
    "tables whose HR@10 scatters by more than .03 over three seeds are to have ten. **Honest** is "
    "what the same settings reach without the papers' flaws, ranked among all items ([what they are](evaluation.md)). "
    "The verdict goes by the mean's distance from the published figure; of bytes and seconds by its share of it (3 % "
    "and 5 %). Seconds were published for another machine."
)
_PICTURES = (
    "![Published figures against those here: equal on the line, within .03 in the band](pictures/ledger-here.svg)\n"
    "![Figures here against the same settings under protocol honest](pictures/ledger-honest.svg)"
)
_UNSEEN = (
    "No paper uses goodbooks, and nothing was chosen by looking at it: every setting is its default. What holds on the "
    "papers' data alone would not hold here (`ownview bench unseen`)."
)


def page(found: Sequence[Line], new: Sequence[UnseenLine], record: Record) -> str:
    """The whole page.

    Args:
        found: every published figure.
        new: rows on data that no paper uses.
        record: where the runs come from.
    """
    parts = ["# The ledger", "", _INTRO, "", *_counts(found), "", *_shares(found), "", _PICTURES, "", _READING]
    parts += ["", "## Data no paper uses", "", _UNSEEN, "", *_unseen(new)]
    for paper, of_paper in grouped((line.figure.paper, line) for line in found).items():
        parts += ["", f"## {paper}", "", f"{CITATIONS[paper]}."]
        for table, lines in grouped((line.figure.table, line) for line in of_paper).items():
            parts += ["", f"### {paper}, Table {table}"]
            for data, on_data in grouped((line.figure.data, line) for line in lines).items():
                parts += ["", f"**{data}**", "", *_table(on_data)]
            parts += _reasons(lines)
    return "\n".join([*parts, "", "## Where the runs come from", "", *_sources(record), ""])


def _counts(found: Sequence[Line]) -> list[str]:
    by_paper = grouped((line.figure.paper, line) for line in found)
    kinds = [verdict for verdict in Verdict if any(line.verdict is verdict for line in found)]
    every = {**by_paper, "all": list(found)}
    rows = []
    for paper, lines in every.items():
        counts = Counter(line.verdict for line in lines)
        ran = sum(line.verdict.ran for line in lines)
        # Spaces at which no line is broken: columns are narrow.
        cell = f"{ran} ({share(ran, len(lines))})".replace(" ", "\xa0")
        rows.append([paper, str(len(lines)), cell, *(str(counts[one]) for one in kinds)])
    return [
        *table_lines(["paper", "figures", "run", *map(str, kinds)], rows),
        "",
        "Every figure stands in one column: within .05 are those not within .03, lower and higher are further off.",
    ]


def share(part: int, whole: int) -> str:
    """As whole per cent; a dash of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _shares(found: Sequence[Line]) -> list[str]:
    """What the counts come to, in sentences."""
    at_hand = [line for line in found if line.verdict is not Verdict.NO_DATA]
    ran = [line for line in at_hand if line.verdict.ran]
    own = [line for line in at_hand if line.row.own]
    own_ran = [line for line in own if line.verdict.ran]
    near = [line for line in own_ran if line.verdict is Verdict.NEAR]
    many = sum(line.here is not None and len(line.here.by_seed) > 1 for line in ran)
    twins = sum(line.honest is not None for line in ran)
    lines = [
        f"- **{len(ran)} of the {len(at_hand)} figures whose data is at hand have been run "
        f"({share(len(ran), len(at_hand))})**, {many} with more than one seed, {twins} with their honest twin.",
        f"- The five systems' own figures in their main tables: {len(own_ran)} of {len(own)} have been run, "
        f"**{len(near)} of them within .03 of the paper ({share(len(near), len(own_ran))})**.",
    ]
    pairs = [
        (line.here.over.mean, line.honest.over.mean)
        for line in own_ran
        if line.here is not None and line.honest is not None and line.figure.metric == "HR@10"
    ]
    if pairs:
        here, honest = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
        lines.append(
            f"- HR@10 of those systems, mean over {counted(len(pairs), 'row')} with a twin: {here:.3f} of 100 items as "
            f"their papers measure, {honest:.3f} of all items honestly."
        )
    return lines


def _table(lines: Sequence[Line]) -> list[str]:
    rows = [
        [
            f"{line.figure.method}, {line.figure.metric}",
            printed(line.figure.value, line.figure.metric),
            over_seeds(line.here, line.figure.metric),
            over_seeds(line.honest, line.figure.metric),
            str(line.verdict) + (f": {line.why}" if line.verdict is Verdict.TOO_LARGE else ""),
        ]
        for line in lines
    ]
    return table_lines(["figure", "published", "here", "honest", "verdict"], rows)


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Why figures failed or cannot be run, each reason once."""
    reasons = grouped(
        ((str(line.verdict), line.why), f"{line.figure.method} on {line.figure.data}")
        for line in lines
        if line.why and line.verdict is not Verdict.TOO_LARGE
    )
    found = [f"- {verdict}: {', '.join(dict.fromkeys(who))}: {why}" for (verdict, why), who in reasons.items()]
    return ["", *found] if found else []


def printed(value: float, metric: str) -> str:
    """What a paper has printed: shares with four places, or three where the fourth is 0."""
    return number(value, metric) if metric in COSTS else f"{value:.4f}".removesuffix("0")


def number(value: float, metric: str) -> str:
    """Three places of a share; three digits of bytes and seconds."""
    return f"{value:.3g}" if metric in COSTS else f"{value:.3f}"


def over_seeds(found: Seeds | None, metric: str) -> str:
    """0.714 ± 0.010 (3); a dash where there is none."""
    if found is None:
        return "-"
    over = found.over
    spread = "" if over.spread is None else f" ± {number(over.spread, metric)}"
    return f"{number(over.mean, metric)}{spread} ({len(found.by_seed)})"


def _unseen(new: Sequence[UnseenLine]) -> list[str]:
    protocols = list(dict.fromkeys(line.protocol for line in new))
    columns = [(protocol, metric) for protocol in protocols for metric in ("HR@10", "NDCG@10")]
    heads = ["method", *(f"`{protocol}` {metric}" for protocol, metric in columns)]
    made: list[str] = []
    for data, on_data in grouped((line.data, line) for line in new).items():
        rows = []
        for row, lines in grouped((line.row, line) for line in on_data).items():
            by_protocol = {line.protocol: line.found for line in lines}
            cells = [over_seeds(by_protocol.get(protocol, {}).get(metric), metric) for protocol, metric in columns]
            rows.append([row, *cells])
        made += ["", f"**{data}**", "", *table_lines(heads, rows)]
    return made[1:]


def _sources(record: Record) -> list[str]:
    known = [one["provenance"] for one in record.runs.values()]
    if not known:
        return ["Nothing was recorded for the ledger yet; what stands above was recorded by [suites](results.md)."]
    machines = Counter(_machine(one.get("machine", {})) for one in known)
    hours = sum(one["seconds"] for one in record.runs.values()) / 3600
    sources = [
        f"- {counted(len(known), 'run')}, {hours:.1f} hours of training in all; runs of [suites](results.md) that are "
        "what a row asks for count too",
        f"- machines: {_each(machines)}",
        f"- revisions: {_each(Counter(str(one.get('revision')) for one in known))}",
        f"- torch: {_each(Counter(str(one.get('packages', {}).get('torch')) for one in known))}",
    ]
    if record.not_found:
        sources.append(f"- data not to be had: {', '.join(sorted(record.not_found))}")
    return sources


def _machine(values: Any) -> str:
    kind = f"{values.get('cores')} cores, {values.get('cpu') or values.get('processor')}"
    device = values.get("device")
    return kind if device == "cpu" else f"{device} ({kind})"


def _each(counts: Counter[str]) -> str:
    return "; ".join(f"{name} ({counted(number_of, 'run')})" for name, number_of in _sorted(counts.items()))


def _sorted(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(items, key=lambda item: (-item[1], item[0]))
