"""What hostile tabs reach with two servers that cannot look into a share, without groups and with them.

    python -m benchmarks.hostile_tabs    # measures; results/hostile_tabs.json, and the table of docs/one-message.md

goodbooks, its 364 most popular books, 1,200 readers, FedEASE's pairs, lambda 100. The target is the book that the
fewest of them had; reached is the share of honest readers who do not have it whose ten best books then hold it. Groups:
ten, drawn by chance, of which one that stands out is left out (`one_message.groups`). Means of seeds 0, 1 and 2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.data.datasets.catalog import load
from ownview.one_message.groups import alike
from ownview.one_message.numbers import signed, summand, triangle
from ownview.one_message.solving import solve
from ownview.one_message.tables import STEP
from ownview.one_message.terms import Terms, agreed

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "hostile_tabs.json", ROOT / "docs" / "one-message.md"
BEGIN, END = "<!-- begin: benchmarks/hostile_tabs.py -->\n", "<!-- end: benchmarks/hostile_tabs.py -->"
ITEMS, PEOPLE, GROUPS, SEEDS = 364, 1200, 10, (0, 1, 2)
WAYS: dict[str, tuple[int, int]] = {
    "none": (0, 0),
    "one tab, a column of 2^20 steps": (1, 2**20),
    "one tab, a column of 4,096 steps": (1, STEP),
    "1 %, columns of 4,096 steps": (PEOPLE // 100, STEP),
    "5 %, columns of 4,096 steps": (PEOPLE // 20, STEP),
}
HISTORIES = "5 %, histories that could be a reader's"


def _world() -> tuple[Terms, list[list[int]]]:
    data = load("goodbooks")
    kept = np.argsort(-np.bincount(data.item), kind="stable")[:ITEMS]
    place = {item: k for k, item in enumerate(kept.tolist())}
    said = [[place[item] for item in data.item[data.of(user)].tolist() if item in place] for user in range(PEOPLE)]
    urls: Any = {"a": "http://a", "b": "http://b"}
    keys: Any = dict.fromkeys(("a", "b"), bytes(32))
    return agreed("fedease", [str(data.items[item]) for item in kept], urls, keys), said


def _reached(terms: Terms, total: Any, said: list[list[int]], target: int) -> float:
    solved = solve(terms, total, 1, len(said), {"regularization": 100.0}, 1)
    (term,) = solved.form.terms
    assert isinstance(term.weights, torch.Tensor)
    assert len(solved.ids) == ITEMS
    without = [one for one in said if one and target not in one]
    asked, had = torch.zeros(2, len(without), ITEMS, dtype=torch.float64)
    for row, mine, one in zip(asked, had, without, strict=True):
        row[one] = term.counts(len(one))
        mine[one] = torch.inf
    best = (asked @ term.weights.double() - had).topk(10).indices
    return float((best == target).any(1).double().mean())


def measured() -> list[dict[str, Any]]:
    """One row a way of attacking: reached without groups and with them, means over seeds, and groups left out."""
    terms, said = _world()
    honest = np.stack([signed(summand(terms, one)).astype(np.int32) for one in said])
    target = int(np.bincount([item for one in said for item in one], minlength=ITEMS).argmin())
    others = np.arange(ITEMS)
    column = triangle(np.minimum(others, target), np.maximum(others, target), ITEMS)
    found = []
    for name in (*WAYS, HISTORIES):
        rows = []
        for seed in SEEDS:
            chance = np.random.default_rng(seed)
            if name == HISTORIES:
                fakes = [summand(terms, [*chance.permutation(40)[:20].tolist(), target]) for _ in range(PEOPLE // 20)]
                hostile = np.stack([signed(one).astype(np.int32) for one in fakes])
            else:
                count, size = WAYS[name]
                hostile = np.zeros((count, terms.size), dtype=np.int32)
                hostile[:, column] = size
            every = np.concatenate([honest, hostile])
            group = chance.integers(0, GROUPS, len(every))
            sums = np.stack([every[group == g].sum(0, dtype=np.int64) for g in range(GROUPS)])
            kept = alike(sums, np.bincount(group, minlength=GROUPS))
            rows.append((_reached(terms, sums.sum(0), said, target), _reached(terms, sums[kept].sum(0), said, target),
                         int((~kept).sum())))  # fmt: skip
        plain, grouped, left = np.mean(rows, axis=0).tolist()
        found.append({"attack": name, "reached": plain, "reached_by_groups": grouped, "groups_left_out": left})
        print(json.dumps(found[-1]), flush=True)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """For the page."""
    lines = [
        "| hostile tabs | lists reached | with ten groups | groups left out |",
        "| --- | --- | --- | --- |",
        *(
            f"| {one['attack']} | {100 * one['reached']:.1f} % | {100 * one['reached_by_groups']:.1f} % | "
            f"{one['groups_left_out']:.1f} |"
            for one in rows
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the record and the page."""
    rows = measured()
    about = {"data": "goodbooks", "items": ITEMS, "people": PEOPLE, "groups": GROUPS, "seeds": SEEDS, "rows": rows}
    RESULTS.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(before + BEGIN + table(rows) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
