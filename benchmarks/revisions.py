"""Rounds of this tree and of an older revision in turns, in one run: CPU-seconds, and their ratio.

    python -m benchmarks.revisions d694537                  # cases of benchmarks.engine and benchmarks.rounds
    python -m benchmarks.revisions d694537 --turns 7 --methods fedmf --out revisions.json

Each revision measures itself, by the `benchmarks` folder of its own, in a fresh process with one thread; which of the
two goes first alternates. The ratio is that of the medians. Beside it stands the old revision's own spread, its largest
over its smallest turn: a ratio inside it says nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.rounds import USUAL

ROOT = Path(__file__).resolve().parents[1]
ENGINE = """
import json
from benchmarks.engine import Case, measure
print(json.dumps(measure(Case("ml-100k-sized", {name!r}, {engine!r}, "cpu", {every}, 2)).seconds_per_round))
"""
ROUNDS = """
import json, time
time.perf_counter = time.process_time  # this machine may have other work
import torch
torch.set_num_threads(1)
from benchmarks import rounds
split = rounds.leave_one_out(rounds.generated("ml-100k-sized"), ties="file", untimed="appearance", seed=0)
print(json.dumps(rounds.measured({name!r}, split, "cpu", 3, profiled=False)["all"]))
"""


def cases(methods: list[str]) -> dict[str, str]:
    """By name, the program that a revision runs."""
    found = {f"rounds {name}": ROUNDS.format(name=name) for name in methods}
    for name in ("fedmf", "pfedrec"):
        for engine, every in (("vector", 1), ("loop", 20)):
            found[f"engine {name} {engine}"] = ENGINE.format(name=name, engine=engine, every=every)
    return found


def seconds(tree: Path, program: str) -> float:
    """CPU-seconds of a round, as a tree measures itself."""
    place = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tree, env=place, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr.strip().splitlines()[-1]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def unpacked(revision: str, folder: Path) -> Path:
    """Sources and benchmarks of a revision."""
    packed = subprocess.run(
        ["git", "archive", revision, "src", "benchmarks"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Measure, print a line a case, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="that is compared with this tree, such as d694537")
    parser.add_argument("--methods", nargs="+", default=list(USUAL), help="of benchmarks.rounds")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": unpacked(asked.revision, Path(folder)), "now": ROOT}
        for case, program in cases(asked.methods).items():
            took: dict[str, list[float]] = {"before": [], "now": []}
            for turn in range(asked.turns):
                for name in sorted(trees, reverse=turn % 2 == 1):
                    took[name].append(seconds(trees[name], program))
            before, now = (statistics.median(took[name]) for name in ("before", "now"))
            spread = max(took["before"]) / min(took["before"])
            found[case] = {"ratio": now / before, "spread before": spread, **took}
            print(
                f"{case:24} {before:.3f} -> {now:.3f} CPU-s, ratio {now / before:.3f}, spread {spread:.3f}", flush=True
            )
    ratio = statistics.geometric_mean(float(str(one["ratio"])) for one in found.values())
    print(f"geometric mean of the ratios: {ratio:.3f}")
    if asked.out:
        about = {"revision": asked.revision, "turns": asked.turns, "geometric mean": ratio}
        asked.out.write_text(json.dumps({**about, "cases": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
