"""Every federated method beside what the machine cannot go below, in one run.

    python -m benchmarks.methods --out results/speed/NAME-OF-MACHINE.json   # an hour on one idle core
    python -m benchmarks.methods --methods fedmf pfedrec --clients 1000     # a few minutes, nothing written
    python -m benchmarks.methods --render                                   # committed results into docs/speed.md

Every case runs in a process of its own with one thread and counts CPU-seconds, so that other work on the machine counts
little; compare within one run. The world is generated, of ml-100k's size and shape, so that any machine can run it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.engine import Case, measure, peak_memory
from benchmarks.floor import bandwidth, bytes_of_a_round
from benchmarks.rendering import rendered
from benchmarks.worlds import generated, of_clients
from ownview.base.files import write_text
from ownview.data.interactions import Interactions
from ownview.data.splits import leave_one_out
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.federation.round import Federation
from ownview.registry import METHODS

WORLD = "ml-100k-sized"
RESEARCH = ("fedmf", "pfedrec")
PAGE = Path("docs/speed.md")
RESULTS = Path("results/speed")


@dataclass(frozen=True)
class Measured:
    """One method on one world.

    Args:
        method: by its registered name.
        clients: in the world.
        seconds: of CPU a round, by part; the median of the rounds after the first.
        total: all parts together.
        peak_memory_bytes: of the process.
        floor_bytes: that optimisers must move in a round; None where clients do not train.
    """

    method: str
    clients: int
    seconds: dict[str, float]
    total: float
    peak_memory_bytes: int
    floor_bytes: int | None


def one_method(method: str, clients: int | None, rounds: int) -> Measured:
    """Rounds of one method; meant for a fresh process."""
    torch.set_num_threads(1)
    data: Interactions = generated(WORLD) if clients is None else of_clients(clients)
    split = leave_one_out(data, ties="file", untimed="appearance", seed=0)
    one = Federation(METHODS[method](), split, split.known_items(), FederationOptions(), 0, machine("cpu", "8GB"))
    floor, found = bytes_of_a_round(one, 1), []
    for number in range(1, rounds + 2):
        start, wall = time.process_time(), time.perf_counter()
        report = one.round(number)
        took = time.process_time() - start
        # The parts are told in seconds of the clock; each has its share of the CPU's.
        share = took / (time.perf_counter() - wall)
        found.append({part: value * share for part, value in report.seconds.items()} | {"all": took})
    kept = found[1:]
    seconds = {part: statistics.median(line[part] for line in kept) for part in kept[0]}
    total = seconds.pop("all")
    return Measured(method, split.num_users, seconds, total, peak_memory("cpu"), floor)


def everything(methods: list[str], growth: list[int], rounds: int) -> dict[str, Any]:
    """All of it, as it is written down."""
    start = os.getloadavg()[0]
    measured = [_apart(one_method, name, None, rounds) for name in methods]
    for one in measured:
        print(f"{one.method:12} {one.total:8.2f} s a round, {one.peak_memory_bytes / 1e6:,.0f} MB", flush=True)
    engines = []
    for name in (one for one in methods if one in RESEARCH):
        for engine, every in (("vector", 1), ("loop", 10), ("research", 40)):
            timing = _apart(measure, Case(WORLD, name, engine, "cpu", every, 1))
            engines.append({"method": name, "engine": engine, "seconds": timing.seconds_per_round})
            print(f"{name:12} {timing.seconds_per_round:8.2f} s a round, {engine}", flush=True)
    grown = [_apart(one_method, "fedmf", count, rounds) for count in growth]
    for one in grown:
        print(f"{one.clients:12,} clients: {1e3 * one.total / one.clients:.3f} ms a client", flush=True)
    about = {"machine": _machine(), "cores": os.cpu_count(), "threads": 1, "torch": torch.__version__}
    busy = {"load_before": round(start, 1), "load_after": round(os.getloadavg()[0], 1)}
    return {
        "about": {**about, **busy, "world": WORLD, "copy_bytes_per_second": _apart(bandwidth)},
        "methods": [asdict(one) for one in measured],
        "engines": engines,
        "growth": [asdict(one) for one in grown],
    }


def _apart(work: Any, *given: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


def _machine() -> str:
    """The class of the machine: its processor, and nothing that tells one machine from another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {model}".strip()


def main() -> None:
    """Measure and write, or put what is written into the page."""
    parser = argparse.ArgumentParser(description="Speed of every federated method, in one run.")
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=sorted(METHODS))
    parser.add_argument("--clients", nargs="*", type=int, default=[1_000, 10_000, 100_000], help="growth of FedMF")
    parser.add_argument("--rounds", type=int, default=2, help="measured, after one that is not")
    parser.add_argument("--out", type=Path, help="JSON; nothing is written without")
    parser.add_argument("--floor", action="store_true", help="the machine's bandwidth alone")
    parser.add_argument("--render", action="store_true", help=f"{RESULTS}/*.json into {PAGE}, and nothing else")
    asked = parser.parse_args()
    if asked.floor:
        print(f"{_apart(bandwidth) / 1e9:.1f} GB a second read and written by one core")
    elif asked.render:
        documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
        write_text(PAGE, rendered(PAGE.read_text(encoding="utf-8"), documents))
    else:
        found = everything(asked.methods, asked.clients, asked.rounds)
        if asked.out:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            write_text(asked.out, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
