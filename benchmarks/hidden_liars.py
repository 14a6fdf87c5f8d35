"""What liars reach where no summand can be looked at: results/hidden_liars.json, and the tables of docs/dishonest.md.

python -m benchmarks.hidden_liars groups --data-dir DIR   masked sums, in one and in several groups
python -m benchmarks.hidden_liars takers --data-dir DIR   a limit for items that few have taken
python -m benchmarks.hidden_liars page                    writes the tables into the page

Protocol `honest`, seed 0, default settings; liars promote an item that about eight people have. Groups: masks are left
out, which changes no sum; the clip is above the longest honest upload, so that it costs nothing. The limit by takers:
a server that adds up whatever is finite, as it must where uploads are masked. Boosted: 10^3 times. Nothing is chosen
by a figure. Rows that are there are kept; --rows N makes so many at most.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ownview.attacks.dishonest.audit import allowed_exposure
from ownview.attacks.dishonest.crew import BOOSTED, BOUNDED, COUNTED, COUNTED_BOOSTED, PROMOTE, Crew
from ownview.attacks.dishonest.infiltration import infiltrated, lists_of, top_tens
from ownview.attacks.view import Scene
from ownview.data.interactions import Interactions
from ownview.evaluation.named_protocols import HONEST
from ownview.runs.experiment import Experiment
from ownview.runs.findings.attacking import scene_of
from ownview.runs.training.setup import load_data, split_data

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "hidden_liars.json", ROOT / "docs" / "dishonest.md"
FACTOR = 1e3
FEW = 400
"""Items of ml-100k on which masked sums of pairs are measured: of all 1,682 a client masks 1.4 million numbers."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Tried:
    """One server under one method.

    Args:
        table: which table it stands in: "groups" or "takers".
        method: its name.
        data: its name.
        rounds: of training.
        privacy: the federation's setting.
        settings: of the method.
        means: of the liars.
        items: of the data, drawn by seed 0; 0 for all.
    """

    table: str
    method: str
    data: str
    rounds: int
    privacy: str = "none"
    settings: Mapping[str, Any] = field(default_factory=dict)
    means: Sequence[str] = (BOOSTED, BOUNDED)
    items: int = 0

    @property
    def named(self) -> Row:
        """What tells its rows from others."""
        about = {"table": self.table, "method": self.method, "data": self.data, "rounds": self.rounds}
        about |= {"items": self.items} if self.items else {}
        return {**about, "privacy": self.privacy, "settings": dict(self.settings), "protocol": "honest", "seed": 0}


def _groups() -> Iterator[Tried]:
    for groups in ("", ",groups=10", ",groups=50", ",groups=10,combine=median"):
        yield Tried("groups", "fedease", "ml-100k", 1, f"masked:clip=200{groups},masks=skipped", items=FEW)


def _takers() -> Iterator[Tried]:
    for method, every in (("fedease", (0, 20, 50, 100)), ("fednext", (0, 20, 50))):
        for takers in every:
            yield Tried("takers", method, "ml-100k", 1, settings={"takers": takers}, means=(BOUNDED, *COUNTED))


TABLES = {"groups": _groups, "takers": _takers}


def measure(table: str, data_dir: Path | None, rows: int) -> None:
    """Measure the rows of a table that are not there yet, and keep each at once; `rows` at most."""
    for tried in TABLES[table]():
        base = Experiment(
            tried.method, data=tried.data, rounds=tried.rounds, protocol=HONEST, settings=dict(tried.settings)
        )
        base = replace(base, federation=replace(base.federation, privacy=tried.privacy))
        split = split_data(base, _data(base, data_dir, tried.items))
        scene = scene_of(base, base.model(), split)
        counts = sorted({1, *(max(1, round(share * split.num_users)) for share in (0.01, 0.05))})
        crews = [Crew(split, PROMOTE, tried.means[0], 0)]
        alone = (BOOSTED, COUNTED_BOOSTED)  # one whose lie is no longer than honest work reaches nothing anywhere
        each = ((means, count) for means in tried.means for count in counts if count > 1 or means in alone)
        crews += [Crew(split, PROMOTE, means, count) for means, count in each if means != COUNTED_BOOSTED or count == 1]
        for crew in crews:
            row = {**tried.named, "users": split.num_users, "attack": crew.means if crew.count else "honest"}
            row["clients"] = crew.count
            if any(all(one.get(name) == value for name, value in row.items()) for one in read()):
                continue
            if rows <= 0:
                return
            rows, began = rows - 1, time.process_time()
            found = _found(scene, crew, tried.rounds)
            _keep({**row, **found, "cpu_s": round(time.process_time() - began, 1)})
            print(json.dumps(read()[-1]), flush=True)


def _data(experiment: Experiment, data_dir: Path | None, items: int) -> Interactions:
    """Of so many items, or of all."""
    data = load_data(experiment, data_dir)
    if not items:
        return data
    some = np.random.default_rng(0).permutation(data.num_items)[:items]
    return data.select(np.isin(data.item, some))


def _found(scene: Scene, crew: Crew, rounds: int) -> Row:
    """How far one crew gets, and how many honest people and liars the server left out, in the mean of a round."""
    federation, _ = infiltrated(scene, crew, FACTOR, checked=False)
    members, honest, lying = set(crew.members.tolist()), 0, 0
    for number in range(1, rounds + 1):
        out = federation.round(number).left_out
        lying += len(members & set(out))
        honest += len(set(out) - members)
    tens: Tensor | None = top_tens(federation)
    lists = lists_of(tens, crew)
    figures = {"exposure": lists.exposure, "HR@10": lists.hits}
    plain = {name: None if math.isnan(value) else value for name, value in figures.items()}
    return {**plain, "honest left out": honest / rounds, "liars left out": lying / rounds}


def _keep(row: Row) -> None:
    RESULTS.write_text(json.dumps({"rows": [*read(), row]}, indent=1) + "\n", encoding="utf-8")


def read() -> list[Row]:
    """All rows of the record."""
    return list(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]) if RESULTS.exists() else []


def page() -> None:
    """Write the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    for table in TABLES:
        begin, end = (f"<!-- {part}: benchmarks/hidden_liars.py {table} -->\n" for part in ("begin", "end"))
        head, rest = text.split(begin)
        text = head + begin + rendered(table, read()) + end + rest.split(end)[1]
    PAGE.write_text(text, encoding="utf-8")


def rendered(table: str, rows: list[Row]) -> str:
    """One table, as Markdown: a row a server, a column an attack."""
    known = {_server(one): one for one in rows if one["table"] == table}
    lines: list[str] = []
    for method in dict.fromkeys(one["method"] for one in known.values()):
        servers = [server for server, one in known.items() if one["method"] == method]
        mine = {(_server(one), one["attack"], one["clients"]): one for one in rows if one["table"] == table}
        attacks = dict.fromkeys((attack, count) for server, attack, count in mine if server in servers and count)
        first = known[servers[0]]
        data = f"{first['items']} items of {first['data']}" if first.get("items") else first["data"]
        heads = [f"{attack}, {count}" for attack, count in attacks]
        lines += [
            f"| `{method}`, {data}, {first['users']} people | HR@10 | left out | {' | '.join(heads)} |",
            "| --- | --- | --- |" + " --- |" * len(heads),
        ]
        for server in servers:
            honest = mine.get((server, "honest", 0))
            hits = "-" if honest is None or honest["HR@10"] is None else f"{honest['HR@10']:.3f}".removeprefix("0")
            out = "-" if honest is None else f"{honest['honest left out']:.1f}"
            cells = [_cell(mine.get((server, *one))) for one in attacks]
            lines.append(f"| {_words(known[server])} | {hits} | {out} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _server(one: Row) -> str:
    return f"{one['method']} {one['privacy']} {json.dumps(one['settings'])}"


def _words(one: Row) -> str:
    if one["table"] == "takers":
        return f"`takers={one['settings']['takers']}`" if one["settings"]["takers"] else "no limit"
    parts = [part for part in one["privacy"].split(",") if part.startswith(("groups", "combine"))]
    return f"`{','.join(parts)}`" if parts else "one sum"


def _cell(one: Row | None) -> str:
    """Share of honest people's lists; in bold where it is more than is allowed."""
    if one is None:
        return "-"
    if one["exposure"] is None:
        return "**no list left**"
    allowed = allowed_exposure(one["clients"], one["users"])
    text = f"{100 * one['exposure']:.1f} %"
    return f"**{text}**" if one["exposure"] > allowed else text


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*TABLES, "page"))
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    if given.what == "page":
        page()
    else:
        measure(given.what, given.data_dir, given.rows)


if __name__ == "__main__":
    main()
