"""The results of suites as Markdown: a page of all of them, and tables between markers in files written by hand.

<!-- results:papers/ml-100k -->
(the table of ml-100k in results/papers.json; without the dataset, all of them)
<!-- end of results -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ownview.base.errors import OutputError, suggestion
from ownview.runs.table import Comparison, pooling, table_lines
from ownview.studies.bench.results import Document, Entry, tables

_BLOCK = re.compile(
    r"(<!-- results:(?P<suite>[\w.-]+)(?:/(?P<data>[\w.-]+))? -->\n).*?(<!-- end of results -->)", re.DOTALL
)

_VERSIONS = {"Ownview": "ownview", "revision": "revision", "Python": "python"}
"""By title, names in a run's provenance."""


def page(documents: Iterable[Document]) -> str:
    """A whole page."""
    lines = [
        "# Results",
        "",
        "Made by `ownview render-results` from what `ownview bench SUITE --record results` has written; change neither "
        "by hand. Test at the chosen round, mean over seeds; in brackets the 95 % interval over users of their means "
        "over seeds.",
    ]
    for one in documents:
        lines += ["", *section(one)]
    return "\n".join([*lines, ""])


def section(values: Document) -> list[str]:
    """One suite: its tables, and where they come from."""
    lines = [f"## `{values['suite']}`: {values['title']}", "", *([values["about"], ""] * bool(values["about"]))]
    lines += ["```sh", f"ownview bench {values['suite']}", "```"]
    if "asked_for" in values:
        without = len(values["failures"])
        besides = f" {without} more were tried and came to nothing, for the reasons below." if without else ""
        lines += ["", f"Recorded so far: {len(values['runs'])} of {values['asked_for']} runs of the suite.{besides}"]
    for table in tables(values):
        lines += ["", f"### {table.data}", "", *markdown_table(table), "", *_warnings(table)]
        runs = [one for one in values["runs"] if one["data"] == table.data]
        lines += [f"- {note}" for note in (*_notes(runs), *pooling(table.cells), table.settings, table.legend)]
    return lines + [f"- {told}" for told in failed(values)]


def failed(values: Document) -> list[str]:
    """Which runs failed, and why: one line for all of a dataset that failed for the same reason."""
    same: dict[tuple[str, str], list[Entry]] = {}
    for one in values["failures"]:
        same.setdefault((one["data"], one["reason"]), []).append(one)
    lines = []
    for (data, reason), runs in same.items():
        methods, protocols, seeds = (
            list(dict.fromkeys(str(one[name]) for one in runs)) for name in ("method", "protocol", "seed")
        )
        who = [*methods, data, *protocols, f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"]
        lines.append(f"failed: {', '.join(who)}: {reason}")
    return lines


def markdown_table(table: Comparison) -> list[str]:
    """Both protocols side by side."""
    heads = [f"`{protocol}` {metric} of {table.ranked[protocol]}" for protocol, metric in table.columns]
    cells = {one: [table.cells.get((one, *column)) for column in table.columns] for one in table.methods}
    rows = [
        [
            table.label(one),
            *(
                table.missing(one, column[0]) if cell is None else str(cell)
                for column, cell in zip(table.columns, mine, strict=True)
            ),
        ]
        for one, mine in cells.items()
    ]
    return table_lines(["method", *heads], rows)


def with_tables(text: str, documents: Mapping[str, Document], source: str) -> str:
    """The text with the tables of the suites that its markers name; `source` names it in errors."""

    def block(found: re.Match[str]) -> str:
        name = found["suite"]
        if name not in documents:
            raise OutputError(f"{source}: results:{name}: no such results{suggestion(name, documents)}")
        chosen = [table for table in tables(documents[name]) if found["data"] in (None, table.data)]
        if not chosen:
            known = [table.data for table in tables(documents[name])]
            raise OutputError(
                f"{source}: results:{name}/{found['data']}: no such data in it{suggestion(found['data'], known)}"
            )
        return f"{found[1]}{_short(documents[name], chosen)}\n{found[4]}"

    made, number = _BLOCK.subn(block, text)
    if not number:
        raise OutputError(
            f"{source}: expected lines <!-- results:SUITE --> (or results:SUITE/DATA) and <!-- end of results -->"
        )
    return made


def _short(values: Document, chosen: Sequence[Comparison]) -> str:
    lines: list[str] = []
    for table in chosen:
        runs = [one for one in values["runs"] if one["data"] == table.data]
        lines += [f"{table.data}: test, {_rounds(runs)}, {_seeds(runs)}, 95 % interval over users:", ""]
        told = (*pooling(table.cells), table.settings, table.legend)
        lines += [*markdown_table(table), "", *_warnings(table), *(f"- {one}" for one in told), ""]
    return "\n".join(["", *lines])


def _warnings(table: Comparison) -> list[str]:
    """What must be known to read the figures of a protocol; probed on this data, or told by the protocol's settings."""
    return [f"- **`{name}`**: {found.sentence}" for name in table.ranked for found in table.warnings(name)]


def _notes(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Where the figures come from; several values where runs were made at several times or places."""
    known = [one["provenance"] for one in runs]
    chosen = dict.fromkeys(f"{one['chosen_on']} (`{one['protocol']}`)" for one in runs)
    machines = [one.get("machine", {}) for one in known]
    packages = [one.get("packages", {}) for one in known]
    notes = dict.fromkeys(f"`{one['protocol']}`: {note}" for one in runs for note in one["notes"])
    return [
        f"{_rounds(runs)}, {_seeds(runs)}; round chosen on {', '.join(chosen)}",
        f"data fingerprint {_every(str(one.get('data', {}).get('fingerprint'))[:12] for one in known)}",
        ", ".join(
            [
                *(f"{title} {_every(one.get(name) for one in known)}" for title, name in _VERSIONS.items()),
                *(f"{name} {_every(one.get(name) for one in packages)}" for name in ("torch", "numpy")),
            ]
        ),
        f"machine: {_every(_machine(one) for one in machines)}",
        *notes,
    ]


def _machine(values: Mapping[str, Any]) -> str:
    device = values.get("device")
    kind = f"{values.get('cores')} cores, {values.get('cpu') or values.get('processor')}"
    return kind if device == "cpu" else f"{device} ({kind})"


def _rounds(runs: Sequence[dict[str, Any]]) -> str:
    trained = sorted({one["rounds"] for one in runs if one["rounds"] > 1})
    return f"{' or '.join(map(str, trained))} rounds" if trained else "1 round"


def _seeds(runs: Sequence[dict[str, Any]]) -> str:
    seeds = sorted({one["seed"] for one in runs})
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"


def _every(values: Iterable[Any]) -> str:
    return " and ".join(dict.fromkeys(str(value) for value in values))
