"""Vector engine, the same with compiled steps, loop engine and a research-style loop, side by side in one run.

    python -m benchmarks.engine                       # FedMF and PFedRec on ml-100k and a generated ml-1m-sized world
    python -m benchmarks.engine --device cuda --worlds ml-1m-sized --methods fedmf

Every case runs in a process of its own with one thread; on the CPU its seconds are CPU-seconds, so that other work on
the machine does not count. Slow cases train a systematic sample of the clients (every
k-th by activity) and are scaled by samples; the table says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.research_style import one_round
from benchmarks.worlds import SIZES, generated
from ownview.data.datasets.catalog import load
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.method import Method


@dataclass(frozen=True)
class Case:
    """One row of the table. `every`: train every k-th client only, and scale."""

    world: str
    method: str
    engine: str
    device: str
    every: int
    repeats: int


@dataclass(frozen=True)
class Timing:
    """Seconds of a full round (median of the repeats, the first round, with its compiling, left out) and so on."""

    seconds_per_round: float
    samples_per_second: float
    peak_memory_bytes: int


def cases(worlds: list[str], methods: list[str], device: str) -> list[Case]:
    """What is measured: slow engines on fewer clients where the world is large."""
    found = []
    for world in worlds:
        large = "1m" in world
        for method in methods:
            for engine in ("vector", "compiled"):
                found.append(Case(world, method, engine, "cpu", 1, 1 if large else 3))
                if device == "cuda":
                    found.append(Case(world, method, engine, "cuda", 1, 5))
            found.append(Case(world, method, "loop", "cpu", 20 if large else 1, 1))
            found.append(Case(world, method, "research", "cpu", 100 if large else 10, 1))
    return found


def measure(case: Case) -> Timing:
    """Run one case; meant for a fresh process."""
    torch.set_num_threads(1)
    split = _split(case.world)
    order = torch.argsort(split.train.lengths, stable=True)
    clients = order[case.every // 2 :: case.every]
    method = _method(case.method)
    total = int(split.train.lengths.sum()) * (1 + method.negatives)
    share = int(split.train.lengths[clients].sum()) * (1 + method.negatives) / total
    seconds = _research(case, split, clients) if case.engine == "research" else _engine(case, split, clients)
    full = statistics.median(seconds) / share
    return Timing(full, total * method.local_epochs / full, peak_memory(case.device))


def _engine(case: Case, split: Split, clients: torch.Tensor) -> list[float]:
    place = machine(case.device, "4GB" if case.device == "cpu" else "auto", case.engine)
    one = Federation(_method(case.method), split, split.known_items(), FederationOptions(), 0, place)
    chosen = clients.to(place.device)
    one.fleet.choose = lambda server, number: chosen  # type: ignore[method-assign]
    clock = time.process_time if case.device == "cpu" else time.perf_counter
    times = []
    for number in range(1, case.repeats + 2):
        start = clock()
        one.round(number)
        times.append(clock() - start)
    return times[1:]


def _research(case: Case, split: Split, clients: torch.Tensor) -> list[float]:
    method = _method(case.method)
    start = time.process_time()
    one_round(case.method, split, clients.tolist(), method.negatives, method.batch_size, method.local_epochs)
    return [time.process_time() - start]


def _method(name: str) -> Method:
    method = METHODS[name]()
    if not isinstance(method, Method):
        raise SystemExit(f"{name}: its clients report sums; name methods whose clients train")
    return method


def _split(world: str) -> Split:
    data = generated(world) if world in SIZES else load(world)
    return leave_one_out(data, ties="file", untimed="appearance", seed=0)


def peak_memory(device: str) -> int:
    """Of the process, or of the GPU, in bytes."""
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _table(rows: list[tuple[Case, Timing]]) -> str:
    lines = [
        f"{'world':<14}{'method':<9}{'engine':<10}{'device':<7}{'s/round':>9}{'samples/s':>13}{'peak MB':>9}"
        f"{'speed-up over loop':>20}{'over research':>15}  clients"
    ]
    for case, timing in rows:
        base = {c.engine: t.seconds_per_round for c, t in rows if (c.world, c.method) == (case.world, case.method)}
        loop, research = (base[name] / timing.seconds_per_round for name in ("loop", "research"))
        lines.append(
            f"{case.world:<14}{case.method:<9}{case.engine:<10}{case.device:<7}{timing.seconds_per_round:>9.3f}"
            f"{timing.samples_per_second:>13,.0f}{timing.peak_memory_bytes / 1e6:>9,.0f}"
            f"{loop:>19.1f}x{research:>14.1f}x  " + ("all" if case.every == 1 else f"every {case.every}th, scaled")
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="Speed of the engines, in one run.")
    parser.add_argument("--worlds", nargs="+", default=["ml-100k", "ml-1m-sized"])
    parser.add_argument("--methods", nargs="+", default=["fedmf", "pfedrec"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/engine.json"))
    asked = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    rows: list[tuple[Case, Timing]] = []
    for case in cases(asked.worlds, asked.methods, asked.device):
        with spawn.Pool(1) as pool:
            rows.append((case, pool.apply(measure, (case,))))
        print(
            f"{case.world} {case.method} {case.engine} {case.device}: {rows[-1][1].seconds_per_round:.3f} s", flush=True
        )
    print(_table(rows))
    about: dict[str, Any] = {"processor": platform.machine(), "torch": torch.__version__, "threads": 1}
    if asked.device == "cuda":
        about["gpu"] = torch.cuda.get_device_name()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    results = [{**asdict(case), **asdict(timing)} for case, timing in rows]
    asked.out.write_text(json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
