"""What dishonest clients reach, by method: results/dishonest.json, and the tables of docs/dishonest.md.

python -m benchmarks.dishonest measure METHOD ... --data-dir DIR   one row after the other; rows that are there are kept
    --rows N: at most so many, so that each command is short; lists of honest runs are kept in build/dishonest
    --robust RULE: under a server with that rule beside the defaults of a deployment, in the place of --servers
python -m benchmarks.dishonest page                                writes the tables into the page

Two servers: one that adds up whatever is finite ("before"), and one with the defaults of a deployment ("now"). It
checks what summands declare and, where these have no structure to check, bounds uploads (`federation.liars.defence`)
unless they are whole tables, which "bounded" bounds too.
Of a boosted upload the worst of the factors counts; nothing else is chosen by a figure.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ownview.attacks.dishonest.audit import LOSS, DishonestSettings, allowed_exposure, finding, honest_tens
from ownview.attacks.dishonest.crew import BOOSTED, DEGRADE, GOALS, MEANS, PLAUSIBLE, PROMOTE, Crew
from ownview.attacks.dishonest.crew import BOUNDED as BOUNDED_NORM
from ownview.attacks.dishonest.infiltration import lists_of
from ownview.attacks.dishonest.published.catalogue import PUBLISHED
from ownview.attacks.view import Scene
from ownview.base.display.amounts import counted
from ownview.evaluation.named_protocols import HONEST
from ownview.federation.checks.liars import BOUND, checked_whole, defence
from ownview.registry import METHODS
from ownview.runs.experiment import Experiment
from ownview.runs.findings.attacking import scene_of
from ownview.runs.training.setup import load_data, split_data
from ownview.testing.worlds import federation, small_world

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "dishonest.json", ROOT / "docs" / "dishonest.md"
BEGIN, END = "<!-- begin: benchmarks/dishonest.py -->\n", "<!-- end: benchmarks/dishonest.py -->"
ROUNDS = {
    "fedease": 1, "fednext": 1, "fedials": 5, "fcf": 20, "pfedrec": 10, "fedmf": 10, "colr": 10, "fedfast": 10,
    "fedncf": 5, "fedrap": 10, "fedrecon": 10, "pfedclr": 10, "gpfedrec": 5, "perfedrec": 5, "pfedgraph": 3, "fedem": 5,
    "fedsasrec": 5, "fedcia": 2, "ifedrec": 5,
}  # fmt: skip
"""Of training: fewer than a method's best where a round takes seconds."""
LARGER = ("fedease", "fednext", "fedials", "fcf", "fedsasrec")
"""Methods that are measured on ml-100k; two cores have to do, so the others are on filmtrust."""
WITH_TEXT = ("ifedrec",)
"""Methods that need the items' text: on goodbooks, which has it."""
SERVERS = ("before", "now", "bounded")
"""The last: `bounded:4` where it is no default. Rows of other rules have the rule in the place of the server."""
BOUNDED = ("gpfedrec", "perfedrec", "pfedgraph", "fedem")
"""Methods whose clients send whole tables."""
RULED = ("fedmf", "pfedrec")
RULES = ("clipped:4", "trimmed:0.1", "median", "multi-krum:50", "geometric")
"""Rules beside the default; Multi-Krum leaves out 5 % of filmtrust's people, as many as lie at most."""
RULES_BEGIN, RULES_END = (
    f"<!-- {part}: benchmarks/dishonest.py rules -->{end}" for part, end in (("begin", "\n"), ("end", ""))
)
Row = dict[str, Any]


def measure(
    methods: Iterable[str], servers: list[str], tried: DishonestSettings, data_dir: Path | None, rows: int
) -> None:
    """Measure the rows that are not there yet, and keep each at once; `rows` at most."""
    for method in methods:
        data = "goodbooks" if method in WITH_TEXT else "ml-100k" if method in LARGER else "filmtrust"
        base = Experiment(method, data=data, rounds=ROUNDS[method], protocol=HONEST)
        split = split_data(base, load_data(base, data_dir))
        rule = defence(scene_of(base, base.model(), split).federation().terms)
        for server in servers:
            robust = {"before": "none", "now": rule, "bounded": BOUND}.get(server, server)
            one = replace(base, federation=replace(base.federation, robust=robust))
            scene = scene_of(one, one.model(), split)
            given = replace(tried, rounds=ROUNDS[method], checked=server != "before")
            given = replace(given, factors=given.factors[-1:]) if server != "before" else given
            named = {"method": method, "server": server, "data": data, "rounds": ROUNDS[method], "robust": robust}
            rows = _measure(scene, given, {**named, "protocol": "honest", "seed": 0, "users": split.num_users}, rows)


def _measure(scene: Scene, settings: DishonestSettings, named: Row, rows: int) -> int:
    """Of one method under one server; how many rows are left to be made."""
    for crew in settings.crews(scene):
        row = {**named, "attack": f"{crew.goal}, {crew.means}", "clients": crew.count}
        if any(all(one.get(name) == value for name, value in row.items()) for one in read()):
            continue
        honest, rows = _honest(scene, settings, named, rows)
        if rows <= 0:
            break
        rows, began = rows - 1, time.process_time()
        found = finding(crew, honest, scene, settings)
        _keep({**row, **_plain(found.values), "clients": crew.count, "cpu_s": round(time.process_time() - began, 1)})
        print(row["method"], row["server"], found.attack, found.sentence, flush=True)
    return rows


def _honest(scene: Scene, settings: DishonestSettings, named: Row, rows: int) -> tuple[Tensor | None, int]:
    """Everybody's lists where all are honest, those of the last time where there was one; and rows that are left."""
    about = "-".join(str(named[name]) for name in ("method", "server", "data", "rounds", "robust"))
    file = ROOT / "build" / "dishonest" / f"{about.replace(':', '')}.pt"
    if file.exists():
        kept: Tensor | None = torch.load(file, weights_only=True)
        return kept, rows
    honest = honest_tens(scene, settings.rounds)
    honest_lists = lists_of(honest, Crew(scene.split, PROMOTE, PLAUSIBLE, 0))
    figures = {"exposure": honest_lists.exposure, "HR@10": honest_lists.hits}
    _keep({**named, "attack": "honest", "clients": 0, **_plain(figures)})
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(honest, file)
    return honest, rows - 1


def _keep(row: Row) -> None:
    """In the place of the same row, where there was one."""
    key = ("method", "server", "attack", "clients")
    known = [one for one in read() if any(one[name] != row[name] for name in key)]
    RESULTS.write_text(json.dumps({"rows": [*known, row]}, indent=1) + "\n", encoding="utf-8")


def _plain(values: dict[str, float]) -> dict[str, float | None]:
    """For JSON: a model without a list has no figures."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def page() -> None:
    """Write the tables between their marks."""
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    text = head + BEGIN + tables(read()) + END + rest.split(END)[1]
    head, rest = text.split(RULES_BEGIN)
    PAGE.write_text(head + RULES_BEGIN + rules(read()) + RULES_END + rest.split(RULES_END)[1], encoding="utf-8")


def tables(rows: list[Row]) -> str:
    """As Markdown: what promotes at worst, by method; then every row, before and now."""
    kept = {(one["method"], one["server"], one["attack"], one["clients"]): one for one in rows}
    methods = [name for name in ROUNDS if any(one["method"] == name for one in rows)]
    absent = sorted(set(METHODS) - {*methods, "local-only"})
    left = "`local-only` sends nothing."
    left = f"Not measured: {', '.join(f'`{name}`' for name in absent)}; {left}" if absent else left
    return "\n".join([*_summary(kept, methods), "", left, "", *_all(kept, methods)]) + "\n"


Kept = dict[tuple[str, str, str, int], Row]


def _summary(kept: Kept, methods: list[str]) -> list[str]:
    """A row a method: the worst of all means to promote, by number of liars; and what the rule costs."""
    lines = [
        "| method | now by | one client | 1 % | 5 % | HR@10 without liars | reached |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in methods:
        before, now = (kept.get((method, server, "honest", 0)) for server in SERVERS[:2])
        if before is None:
            continue
        users = before["users"]
        counts = (1, round(0.01 * users), round(0.05 * users))
        worst = [[_worst(kept, method, server, count) for count in counts] for server in SERVERS[:2]]
        where = f"{before['data']}, {counted(before['rounds'], 'round')}"
        cells = " | ".join(f"{_share(a)}, now {_share(b)}" for a, b in zip(*worst, strict=True))
        if now is None:
            lines.append(f"| `{method}` ({where}) | not measured | {cells} | {_figure(before['HR@10'])}, now - | - |")
            continue
        cost = now["HR@10"] / before["HR@10"] - 1 if before["HR@10"] else 0.0
        whole = all((method, "now", f"{PROMOTE}, {means}", one) in kept for means in MEANS for one in counts)
        reached = _reached(cost, [*zip(worst[1], counts, strict=True)], users, whole=whole)
        hits = f"{_figure(before['HR@10'])}, now {_figure(now['HR@10'])}"
        lines.append(f"| `{method}` ({where}) | {_by(method, now)} | {cells} | {hits} | {reached} |")
    return lines


def _by(method: str, honest: Row) -> str:
    """What keeps liars from more under the defaults of a deployment."""
    few = federation(METHODS[method](), small_world(num_users=8))
    return "check" if checked_whole(few.terms) else str(honest["robust"])


def rules(rows: list[Row]) -> str:
    """As Markdown: what rules leave of promoting, and what they cost, where they were measured."""
    kept = {(one["method"], one["server"], one["attack"], one["clients"]): one for one in rows}
    shown = [*((one, ("before", "now", *RULES)) for one in RULED), *((one, ("now", "bounded")) for one in BOUNDED)]
    means = (BOOSTED, BOUNDED_NORM)
    heads = [f"{one}: one, 1 %, 5 %" for one in means]
    lines = [f"| method | `robust=` | {' | '.join(heads)} | HR@10 without liars |", "| --- | --- | --- | --- | --- |"]
    for method, servers in shown:
        for server in servers:
            honest = kept.get((method, server, "honest", 0))
            if honest is None:
                continue
            counts = (1, round(0.01 * honest["users"]), round(0.05 * honest["users"]))
            reached = [[kept.get((method, server, f"{PROMOTE}, {one}", count)) for count in counts] for one in means]
            cells = [", ".join("-" if one is None else _lists(one, PROMOTE)[0] for one in some) for some in reached]
            lines.append(f"| `{method}` | {honest['robust']} | {' | '.join(cells)} | {_figure(honest['HR@10'])} |")
    return "\n".join(lines) + "\n"


def _reached(cost: float, now: list[tuple[float | None, int]], users: int, *, whole: bool) -> str:
    """Whether exposures of so many liars, and the cost in HR@10, are within their limits.

    Args:
        cost: as a change of HR@10, in shares of it.
        now: the highest exposure by number of liars.
        users: how many there are.
        whole: whether all means that apply to every method were measured for every number of liars.
    """
    if cost < -LOSS or any(one is not None and one > allowed_exposure(count, users) for one, count in now):
        return "**no**"
    return "yes" if whole else "as far as measured"


def _worst(kept: Kept, method: str, server: str, count: int) -> float | None:
    """The highest exposure of all means to promote; infinite where no list is left, None where nothing was measured."""
    found = [kept.get((method, server, f"{PROMOTE}, {means}", count)) for means in (*MEANS, *PUBLISHED)]
    shown = [math.inf if one["exposure"] is None else one["exposure"] for one in found if one is not None]
    return max(shown, default=None)


def _all(kept: Kept, methods: list[str]) -> list[str]:
    lines = ["| method | who | target in top tens | now | HR@10 | now |", "| --- | --- | --- | --- | --- | --- |"]
    for method in methods:
        mine = [one for one in kept.values() if one["method"] == method and one["server"] in SERVERS[:2]]
        attacks = {(one["attack"], one["clients"]): one["users"] for one in mine}
        order = {
            f"{goal}, {means}": k for k, (goal, means) in enumerate((g, w) for g in GOALS for w in (*MEANS, *PUBLISHED))
        }
        for (attack, count), users in sorted(attacks.items(), key=lambda one: (order.get(one[0][0], -1), one[0][1])):
            pair = [kept.get((method, server, attack, count)) for server in SERVERS[:2]]
            who = attack if attack == "honest" else f"{attack}, {count} of {users}"
            shown = [_lists(one, attack) for one in pair]
            name = f"`{method}`" if attack == "honest" else ""
            lines.append(f"| {name} | {who} | {shown[0][0]} | {shown[1][0]} | {shown[0][1]} | {shown[1][1]} |")
    return lines


def _lists(one: Row | None, attack: str) -> tuple[str, str]:
    if one is None:
        return "not measured", ""
    refused = " (refused)" if one.get("sent") and one["refused"] == one["sent"] else ""
    exposure = math.inf if one["exposure"] is None else one["exposure"]
    return ("" if attack.startswith(DEGRADE) else _share(exposure)) + refused, _figure(one["HR@10"])


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return "no list left" if math.isinf(value) else f"{100 * value:.1f} %"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".removeprefix("0")


def read() -> list[Row]:
    """All rows of the record."""
    return list(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]) if RESULTS.exists() else []


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--goals", nargs="*", default=[PROMOTE], choices=GOALS)
    parser.add_argument("--means", nargs="*", default=list(MEANS), choices=(*MEANS, *PUBLISHED))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.01, 0.05])
    parser.add_argument("--servers", nargs="*", default=list(SERVERS[:2]), choices=SERVERS)
    parser.add_argument("--robust", choices=RULES)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    if given.what == "page":
        page()
    else:
        tried = DishonestSettings(0, given.goals, given.means, given.shares)
        measure(
            given.methods or ROUNDS,
            [given.robust] if given.robust else given.servers,
            tried,
            given.data_dir,
            given.rows,
        )


if __name__ == "__main__":
    main()
