"""Synchronous rounds against FedBuff with stragglers: simulated time to the same validation NDCG@10.

python -m benchmarks.asynchronous measure   runs what is not there yet (ml-100k), and writes results/asynchronous.json
python -m benchmarks.asynchronous show      the table

The rule, written after a short trial of synchronous FedMF with these settings: 30 % of the clients are ten times as
slow. The target is 95 % of the best validation NDCG@10 that synchronous rounds without a deadline reach, by seed; a
row's time is that of its first measurement at or above the target. Test is not looked at. All rows have the same
method, settings and clients at work, and 12,000 clients in all; at first they had 6,000, 12,000 and 4,000, with which
FedBuff reached the target for two of three seeds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean

import ownview as ov

RECORD = Path(__file__).resolve().parents[1] / "results" / "asynchronous.json"
SETTINGS = {"local_epochs": 2, "learning_rate": 0.05}
TIERS, SEEDS = "tiers=0.7:1+0.3:10,spread=0.2", (0, 1, 2)
ROWS = {
    "synchronous, waits for everybody": (TIERS, 120, 2),
    "synchronous, deadline of 5 s": (f"{TIERS},deadline=5", 120, 2),
    "FedBuff, buffer of 20": (f"{TIERS},buffer=20", 600, 10),
}
"""By name, devices, rounds, and rounds between measurements: every 200 clients. A hundred clients work in each."""


def measure(folder: Path) -> None:
    """Carry out all rows and write the record."""
    found = []
    for place_of_row, (name, (devices, rounds, every)) in enumerate(ROWS.items()):
        for seed in SEEDS:
            place = folder / f"{place_of_row}-{seed}"
            options = {"clients": "100", "row_mean": "touched", "devices": devices}
            if place.exists():
                run = ov.resume(place)
            else:
                run = ov.run(
                    "fedmf", "ml-100k", settings=SETTINGS, rounds=rounds, measure_every=every, seed=seed,
                    federation=options, out=place,
                )  # fmt: skip
            lines = [line for line in run.folder.read_rounds() if "validation" in line]
            curve = [(line["round"], line["simulated_seconds"], line["validation"]["NDCG@10"]) for line in lines]
            found.append({"row": name, "seed": seed, "devices": devices, "curve": curve})
            print(name, seed, f"{max(value for _, _, value in curve):.4f}", flush=True)
    about = {"data": "ml-100k", "method": "fedmf", "settings": SETTINGS, "protocol": "honest", "clients": 100}
    record = json.dumps({"about": about, "runs": found}).replace('{"row"', '\n{"row"')
    RECORD.write_text(record + "\n", encoding="utf-8")


def table(record: Path = RECORD) -> list[str]:
    """Of the record, as Markdown."""
    runs = json.loads(record.read_text(encoding="utf-8"))["runs"]
    first = next(iter(ROWS))
    targets = {one["seed"]: 0.95 * max(value for _, _, value in one["curve"]) for one in runs if one["row"] == first}
    waited = {one["seed"]: _reached(one["curve"], targets[one["seed"]]) for one in runs if one["row"] == first}
    lines = [
        "| rounds | best NDCG@10 | simulated s to the target | rounds to it | times as fast |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in dict.fromkeys(one["row"] for one in runs):
        mine = {one["seed"]: one["curve"] for one in runs if one["row"] == row}
        best = mean(max(value for _, _, value in curve) for curve in mine.values())
        reached = {seed: _reached(curve, targets[seed]) for seed, curve in mine.items()}
        there = {seed: one for seed, one in reached.items() if one is not None}
        if len(there) < len(mine):
            lines.append(f"| {row} | {best:.4f} | reached by {len(there)} of {len(mine)} seeds | | |")
            continue
        seconds, rounds = mean(one[1] for one in there.values()), mean(one[0] for one in there.values())
        faster = mean((waited[seed] or (0, 0.0))[1] for seed in there) / seconds
        lines.append(f"| {row} | {best:.4f} | {seconds:.0f} | {rounds:.0f} | {faster:.1f} |")
    return lines


def _reached(curve: list[tuple[int, float, float]], target: float) -> tuple[int, float] | None:
    """Round and simulated seconds of the first measurement at or above a target."""
    return next(((number, seconds) for number, seconds, value in curve if value >= target), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "show"))
    parser.add_argument("--folder", type=Path, default=Path("runs/asynchronous"))
    given = parser.parse_args()
    if given.what == "measure":
        measure(given.folder)
    print("\n".join(table()))
