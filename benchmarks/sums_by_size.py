"""What a client pays for which accuracy where sums are the model: results/sums_by_size.json, a table and a picture.

    python -m benchmarks.sums_by_size measure     row by row; rows that are there are kept
    python -m benchmarks.sums_by_size page        writes docs/scale.md and its picture

A row is a form of a sum and its size. In the open a client sends what is not 0; masked, every number of every sum in
every round, 4 bytes each. FedEASE and FedNext stand with their defaults, once each; a sketch has four trials of lambda,
`LAMBDAS`, of which the best on validation counts, so that what is compared leans towards it. Rows are compared by
validation.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.cheaper_rounds import decimals
from benchmarks.pair_sketch import SketchedEASE
from benchmarks.rendering import between
from benchmarks.sums_picture import drawn
from ownview.federation.facts import world_of
from ownview.federation.reporting import reporting
from ownview.methods.fedease import FedEASE
from ownview.methods.fednext import FedNext
from ownview.runs.api import run
from ownview.runs.run import Run
from ownview.seam.method import Federated

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "sums_by_size.json", ROOT / "docs" / "scale.md"
PICTURE = ROOT / "docs" / "pictures" / "sums-by-size.svg"
BEGIN, END = "<!-- begin: benchmarks/sums_by_size.py -->\n", "<!-- end: benchmarks/sums_by_size.py -->"
PROTOCOLS = {"ml-1m": "honest", "amazon-beauty": "sequential"}
"""The second has no times; `sequential` takes its rows to be in order."""

SEED = 0
LAMBDAS = (100.0, 1_000.0, 10_000.0, 100_000.0)
ITEMS = {"ml-1m": 3_706, "amazon-beauty": 12_101}
RANKS = (16, 32, 64, 128, 256, 512)
SKETCHES = {"ml-1m": (1, 4, 16), "amazon-beauty": (1,)}
"""How many times fewer numbers than pairs a sketch has; solving for amazon-beauty's items takes minutes a trial."""


@dataclass(frozen=True)
class Case:
    """A form of a sum on a dataset. Its size: 0 in full, FedNext's rank, or a sketch's numbers."""

    data: str
    form: str
    size: int = 0
    iterations: int = FedNext().iterations

    def trials(self) -> list[Federated]:
        """The method, once for every setting that is tried."""
        if self.form == "FedEASE":
            return [FedEASE()]
        if self.form == "FedNext":
            return [FedNext(rank=self.size, iterations=self.iterations)]
        return [SketchedEASE(width=self.size, regularization=one) for one in LAMBDAS]

    @property
    def rounds(self) -> int:
        """Until the model is there."""
        return self.iterations + 1 if self.form == "FedNext" and self.size else 1


def cases() -> list[Case]:
    """In the order of the table."""
    made = []
    for data, items in ITEMS.items():
        made.append(Case(data, "FedEASE"))
        made += [Case(data, "FedNext", rank, 1) for rank in RANKS[:3]]
        made.append(Case(data, "FedNext", 64, 2))
        made += [Case(data, "FedNext", rank) for rank in RANKS]
        made += [Case(data, "FedNext")] if data == "ml-1m" else []  # amazon-beauty's takes 43 GB
        made += [Case(data, "sketch", items * (items - 1) // 2 // part) for part in SKETCHES[data]]
    return made


def measured(case: Case) -> dict[str, Any]:
    """One row: its best trial on validation, and bytes of one client in all rounds together."""
    asked = PROTOCOLS[case.data]
    runs = [
        run(one, case.data, protocol=asked, seed=SEED, rounds=case.rounds, measure_every=case.rounds, device="cpu")
        for one in case.trials()
    ]
    best = max(runs, key=lambda one: float(one.result["validation"]["NDCG@10"]))
    lines = best.rounds
    sketched = case.form == "sketch"
    return {
        **asdict(case), "protocol": asked, "seed": SEED, "settings": dict(best.experiment.settings),
        "rounds": case.rounds, "trials": len(runs),
        "validation": float(best.result["validation"]["NDCG@10"]),
        "test": {name: float(best.result["test"][name]) for name in ("HR@10", "NDCG@10")},
        "open": None if sketched else sum(int(line["bytes_up_per_client"]) for line in lines),
        "masked": 4 * (case.size + ITEMS[case.data]) if sketched else 4 * numbers(best) * case.rounds,
        "down": sum(int(line["bytes_down_per_client"]) for line in lines),
        "provenance": json.loads((best.folder.path / "provenance.json").read_text(encoding="utf-8")),
    }  # fmt: skip


def numbers(finished: Run) -> int:
    """Of all sums of a round; one half of a symmetric one, its diagonal with it."""
    split, method = finished.loaded().split, finished.model
    assert isinstance(method, Federated)
    sends = reporting(method.client(world_of(split))).sends.values()
    return sum(one.shape[0] * (one.shape[0] + 1) // 2 if one.symmetric else prod(one.shape) for one in sends)


def recorded() -> list[dict[str, Any]]:
    """The rows that are there."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return rows


def measure(data: list[str]) -> None:
    """Measure the rows that are not there yet, and keep each at once."""
    wanted = cases()
    places = [asdict(one) for one in wanted]
    for case, place in zip(wanted, places, strict=True):
        known = [{name: row[name] for name in place} for row in recorded()]
        if place in known or (data and case.data not in data):
            continue
        new = measured(case)
        rows = [*recorded(), new]  # read anew: others may have been measured meanwhile
        rows.sort(key=lambda row: places.index({name: row[name] for name in place}))
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """A row a case: megabytes of one client in all rounds, and accuracy."""
    ways = "MB up, in the open | MB up, masked | MB down"
    text = f"| data | form | rounds | {ways} | validation NDCG@10 | test HR@10 / NDCG@10 |\n"
    text += "| --- " * 8 + "|\n"
    for row in rows:
        size = "in full" if not row["size"] else f"{'rank ' if row['form'] == 'FedNext' else ''}{row['size']:,}"
        sent = " | ".join(_megabytes(row[way]) for way in ("open", "masked", "down"))
        reached = f"{decimals(row['test']['HR@10'])} / {decimals(row['test']['NDCG@10'])}"
        form = f"{row['data']} | {row['form']}, {size} | {row['rounds']}"
        text += f"| {form} | {sent} | {decimals(row['validation'])} | {reached} |\n"
    return text


def _megabytes(count: int | None) -> str:
    """Nothing where clients sent another form, which is a sketch's in the open."""
    if count is None:
        return ""
    return f"{count / 1e6:,.0f}" if count >= 1e7 else f"{count / 1e6:.2g}"


def page() -> None:
    """Put the table between its markers, and draw the picture."""
    rows = recorded()
    text = between(PAGE.read_text(encoding="utf-8"), "\n" + table(rows) + "\n", (BEGIN, END))
    PAGE.write_text(text, encoding="utf-8")
    PICTURE.write_text(drawn(rows), encoding="utf-8")


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("measure", "page"))
    parser.add_argument("data", nargs="*", metavar="DATA", help=f"some of: {', '.join(ITEMS)}; all if not given")
    asked = parser.parse_args()
    unknown = [one for one in asked.data if one not in ITEMS]
    if unknown:
        raise SystemExit(f"no dataset {unknown[0]!r}; expected some of: {', '.join(ITEMS)}")
    if asked.do == "page":
        page()
    else:
        measure(asked.data)


if __name__ == "__main__":
    main()
