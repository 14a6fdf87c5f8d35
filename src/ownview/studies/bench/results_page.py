"""The results of suites as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ownview.runs.table import Comparison, pooling, table_lines
from ownview.studies.bench.results import Document, Entry, tables

_VERSIONS = {"Ownview": "ownview", "revision": "revision", "Python": "python"}
"""By title, names in a run's provenance."""


def page(documents: Iterable[Document]) -> str:
    """A whole page."""
    lines = [
        "# Results",
        "",
        "Made from what `ownview bench SUITE` has written; change neither by hand. Test at the chosen round, mean over "
        "seeds; in brackets the 95 % interval over users of their means over seeds.",
    ]
    for one in documents:
        lines += ["", *section(one)]
    return "\n".join([*lines, ""])


def section(values: Document) -> list[str]:
    """One suite: its tables, and where they come from."""
    lines = [f"## `{values['suite']}`: {values['title']}", "", *([values["about"], ""] * bool(values["about"]))]
    lines += ["```sh", f"ownview bench {values.get('file', values['suite'])}", "```"]
    if "asked_for" in values:
        without = len(values["failures"])
        besides = f" {without} more were tried and came to nothing, for the reasons below." if without else ""
        lines += ["", f"Recorded so far: {len(values['runs'])} of {values['asked_for']} runs of the suite.{besides}"]
    for table in tables(values):
        lines += ["", f"### {table.data}", "", *markdown_table(table), "", *warnings_of(table)]
        runs = [one for one in values["runs"] if one["data"] == table.data]
        lines += [f"- {note}" for note in (*_notes(runs), *pooling(table.cells), table.settings, table.legend)]
    return lines + [f"- {failure}" for failure in failed(values)]


def failed(values: Document) -> list[str]:
    """Which runs failed, and why, a line for all of a dataset with the same reason; then what is not compared."""
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
    return lines + list(values.get("not_compared", ()))


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


def warnings_of(table: Comparison) -> list[str]:
    """What must be known to read the figures of a protocol; probed on this data, or known by its settings."""
    return [f"- **`{name}`**: {found.sentence}" for name in table.ranked for found in table.warnings(name)]


def _notes(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Where the figures come from; several values where runs were made at several times or places."""
    known = [one["provenance"] for one in runs]
    chosen = dict.fromkeys(f"{one['chosen_on']} (`{one['protocol']}`)" for one in runs)
    machines = [one.get("machine", {}) for one in known]
    packages = [one.get("packages", {}) for one in known]
    notes = dict.fromkeys(f"`{one['protocol']}`: {note}" for one in runs for note in one["notes"])
    return [
        f"{rounds_of(runs)}, {seeds_of(runs)}; round chosen on {', '.join(chosen)}",
        f"data fingerprint {_every(str(one.get('data', {}).get('fingerprint'))[:12] for one in known)}",
        ", ".join(
            [
                *(f"{title} {_every(one.get(name) for one in known)}" for title, name in _VERSIONS.items()),
                *(f"{name} {_every(one.get(name) for one in packages)}" for name in ("torch", "numpy")),
            ]
        ),
        f"machine: {_every(_machine(one) for one in machines)}",
        *dict.fromkeys(_changed(one) for one in known if "changed" in one),
        *notes,
    ]


def _changed(known: Mapping[str, Any]) -> str:
    """What a revision with a "+" says: which files differed from it, and the commit that took them up."""
    changed = known["changed"]
    return (
        f"at revision {known['revision']} changed: {', '.join(changed['files'])}; committed as {changed['committed']}"
    )


def _machine(values: Mapping[str, Any]) -> str:
    device = values.get("device")
    kind = f"{values.get('cores')} cores, {values.get('cpu') or values.get('processor')}"
    return kind if device == "cpu" else f"{device} ({kind})"


def rounds_of(runs: Sequence[dict[str, Any]]) -> str:
    """How many rounds the runs trained, in words."""
    trained = sorted({one["rounds"] for one in runs if one["rounds"] > 1})
    return f"{' or '.join(map(str, trained))} rounds" if trained else "1 round"


def seeds_of(runs: Sequence[dict[str, Any]]) -> str:
    """Their seeds, in words."""
    seeds = sorted({one["seed"] for one in runs})
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"


def _every(values: Iterable[Any]) -> str:
    return " and ".join(dict.fromkeys(str(value) for value in values))
