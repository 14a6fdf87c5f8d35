"""What dishonest clients reach, by method, on ml-100k: results/dishonest.json, and the tables of docs/dishonest.md.

python -m benchmarks.dishonest measure METHOD ... --data-dir DIR   audits, one after the other; takes a method up anew
python -m benchmarks.dishonest page                                writes the tables into the page

Two servers: one that adds up whatever is finite ("before"), and one that checks what summands declare and, where these
have no structure to check, clips to twice the median norm (`robust=clipped:2`, "now"). Of a boosted upload the worst of
three factors counts; nothing else is chosen by a figure.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.attacks.dishonest.audit import DishonestSettings
from ownview.attacks.dishonest.crew import GOALS, PROMOTE
from ownview.base.display.amounts import counted
from ownview.evaluation.named_protocols import HONEST
from ownview.runs.experiment import Experiment
from ownview.runs.findings.attacking import infiltrate_experiment

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "dishonest.json", ROOT / "docs" / "dishonest.md"
BEGIN, END = "<!-- begin: benchmarks/dishonest.py -->\n", "<!-- end: benchmarks/dishonest.py -->"
CLIP = "clipped:2"
ROUNDS = {"fedease": 1, "fednext": 1, "fedials": 5, "fcf": 20, "pfedrec": 10, "fedmf": 10}
CHECKED_WHOLE = ("fedease", "fednext")
"""Methods whose summands have a structure, so that nothing has to be clipped."""


def measure(methods: list[str], data_dir: Path | None) -> None:
    """Audit methods and keep what was found at once."""
    for method in methods:
        goals = GOALS if method == "fedease" else (PROMOTE,)
        for server in ("before", "now"):
            base = Experiment(method, data="ml-100k", rounds=ROUNDS[method], protocol=HONEST)
            if server == "now" and method not in CHECKED_WHOLE:
                base = replace(base, federation=replace(base.federation, robust=CLIP))
            settings = DishonestSettings(ROUNDS[method], goals, shares=(0.01, 0.05), checked=server == "now")
            began = time.monotonic()
            found = infiltrate_experiment(base, settings, data_dir=data_dir)
            entry = {
                "method": method, "server": server, "data": "ml-100k", "protocol": "honest", "rounds": ROUNDS[method],
                "seed": 0, "robust": base.federation.robust, "minutes": round((time.monotonic() - began) / 60, 1),
                "attacks": [{"attack": one.attack, **_plain(one.values)} for one in found.findings],
            }  # fmt: skip
            known = [one for one in _read() if (one["method"], one["server"]) != (method, server)]
            RESULTS.write_text(json.dumps({"audits": [*known, entry]}, indent=1) + "\n", encoding="utf-8")
            print(method, server, entry["minutes"], flush=True)


def _plain(values: dict[str, float]) -> dict[str, float | None]:
    """For JSON: a model without a list has no figures."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def page() -> None:
    """Write the tables between their marks."""
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(head + BEGIN + tables(_read()) + END + rest.split(END)[1], encoding="utf-8")


def tables(audits: list[dict[str, Any]]) -> str:
    """As Markdown: a row an attack, before and now."""
    rows = ["| method | who | target in top tens | now | HR@10 | now |", "| --- | --- | --- | --- | --- | --- |"]
    for method in dict.fromkeys(one["method"] for one in audits):
        servers = {one["server"]: one for one in audits if one["method"] == method}
        if set(servers) != {"before", "now"}:
            continue
        before, now = servers["before"], servers["now"]
        rows.append(_row(f"`{method}` ({counted(before['rounds'], 'round')})", "honest", *map(_honest, (before, now))))
        for one, other in zip(before["attacks"], now["attacks"], strict=True):
            who = f"{one['attack']}, {int(one['clients'])} of 943"
            rows.append(_row("", who, _lists(one), _lists(other)))
    return "\n".join(rows) + "\n"


def _honest(audit: dict[str, Any]) -> tuple[str, str]:
    first = audit["attacks"][0]
    return _share(first["honest exposure"]), _figure(first["honest HR@10"])


def _lists(one: dict[str, Any]) -> tuple[str, str]:
    refused = " (refused)" if one["sent"] and one["refused"] == one["sent"] else ""
    return _share(one["exposure"]) + refused, _figure(one["HR@10"])


def _row(method: str, who: str, before: tuple[str, str], now: tuple[str, str]) -> str:
    return f"| {method} | {who} | {before[0]} | {now[0]} | {before[1]} | {now[1]} |"


def _share(value: float | None) -> str:
    return "no list left" if value is None else f"{100 * value:.1f} %"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".removeprefix("0")


def _read() -> list[dict[str, Any]]:
    return list(json.loads(RESULTS.read_text(encoding="utf-8"))["audits"]) if RESULTS.exists() else []


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    if given.what == "page":
        page()
    else:
        measure(given.methods or list(ROUNDS), given.data_dir)


if __name__ == "__main__":
    main()
