"""Rounds of growing crowds: seconds and memory by the number of clients, and how they grow.

    python -m benchmarks.scale                                   # FedMF, 10^3 to 10^5 clients, 10^5 items
    python -m benchmarks.scale --clients 1000000 --rounds 1      # a million: about 3 CPU-minutes and 1 GB
    python -m benchmarks.scale --methods pfedrec --clients 10000 100000
    python -m benchmarks.scale --ray 1 2                         # with workers: CPU efficiency, and an empty round

Every client has 50 items and trains one epoch on them and four negatives each, with vectors of length 16. Every case
runs in a process of its own with one thread. Seconds are CPU-seconds, so that other work on the machine counts as
little as possible (it still takes caches away); the least of the rounds counts. Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import multiprocessing
import platform
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.workers import Shared, measure_shared, table
from benchmarks.worlds import crowd
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.method import Federated

EACH, WIDTH, NEGATIVES = 50, 16, 4
SHARED_CLIENTS = 16_000


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    method: str
    clients: int
    items: int
    rounds: int


@dataclass(frozen=True)
class Cost:
    """What a round takes.

    Args:
        seconds: CPU-seconds of a round.
        set_up: CPU-seconds to make the world and the federation.
        peak_bytes: of the process.
        before_bytes: of the process before there was a world.
        down: bytes of the message to a client.
        up: bytes of the message from a client, the mean.
    """

    seconds: float
    set_up: float
    peak_bytes: int
    before_bytes: int
    down: int
    up: int

    def by_client(self, clients: int) -> tuple[float, float]:
        """Microseconds and bytes of memory."""
        return self.seconds / clients * 1e6, (self.peak_bytes - self.before_bytes) / clients


def measure(case: Case) -> Cost:
    """Run one case; meant for a fresh process."""
    torch.set_num_threads(1)
    before, start = peak(), time.process_time()
    split = crowd(case.clients, case.items, EACH)
    one = Federation(method(case.method), split, split.train, FederationOptions(), 0, machine("cpu", "20GB"))
    set_up, seconds = time.process_time() - start, []
    for number in range(1, case.rounds + 1):
        start = time.process_time()
        report = one.round(number)
        seconds.append(time.process_time() - start)
    return Cost(min(seconds), set_up, peak(), before, report.bytes_down, report.bytes_up)


def method(text: str) -> Federated:
    """NAME or NAME:SETTING=NUMBER, with the settings that all are measured with, as far as they have them."""
    name, _, own = text.partition(":")
    if name not in METHODS:
        raise SystemExit(f"unknown method {name!r}; expected one of {', '.join(sorted(METHODS))}")
    asked = {"embedding_size": WIDTH, "local_epochs": 1, "negatives": NEGATIVES}
    settings = {key: value for key, value in asked.items() if key in METHODS[name]().values()}
    key, _, value = own.partition("=")
    return METHODS[name](**settings, **({key: int(value)} if own else {}))


def peak() -> int:
    """Bytes that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def alone(case: Case) -> Cost:
    """A case in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case,))


def shared(name: str, workers: int, clients: int, items: int, rounds: int) -> Shared:
    """A federation with workers in a process of its own."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure_shared, method(name), workers, clients, items, EACH, rounds).result()


def slope(costs: Sequence[tuple[Case, Cost]]) -> float:
    """Exponent b of seconds = a clients^b by least squares over logarithms; 1 where the cost a client is the same."""
    points = [(math.log(case.clients), math.log(cost.seconds)) for case, cost in costs]
    middle, height = (sum(column) / len(points) for column in zip(*points, strict=True))
    spread = sum((x - middle) ** 2 for x, _ in points)
    return sum((x - middle) * (y - height) for x, y in points) / spread if spread else math.nan


def line(case: Case, cost: Cost) -> str:
    """A row of the table."""
    micro, held = cost.by_client(case.clients)
    return (
        f"{case.method:<10}{case.clients:>10,}{case.items:>9,}{cost.seconds:>10.2f}{micro:>11.1f}"
        f"{cost.peak_bytes / 1e6:>10,.0f}{held:>12,.0f}{cost.down:>12,}{cost.up:>9,}"
    )


HEAD = (
    f"{'method':<10}{'clients':>10}{'items':>9}{'CPU-s':>10}{'us/client':>11}{'peak MB':>10}{'B/client':>12}"
    f"{'B down':>12}{'B up':>9}"
)


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["fedmf"], help="NAME or NAME:SETTING=NUMBER")
    parser.add_argument("--clients", nargs="+", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--ray", nargs="+", type=int, metavar="N", help="with so many workers, beside none; 16,000 clients"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scale.json"))
    asked = parser.parse_args()
    if asked.ray:
        clients = asked.clients[0] if len(asked.clients) == 1 else SHARED_CLIENTS
        for name in asked.methods:
            print(f"{name}, {clients:,} clients, {asked.items:,} items")
            print(table([shared(name, workers, clients, asked.items, asked.rounds) for workers in (0, *asked.ray)]))
        return
    found: list[tuple[Case, Cost]] = []
    print(HEAD)
    for name in asked.methods:
        costs = []
        for clients in asked.clients:
            case = Case(name, clients, asked.items, asked.rounds)
            costs.append((case, alone(case)))
            print(line(*costs[-1]), flush=True)
        if len(costs) > 1:
            print(f"{name}: CPU-seconds grow as clients^{slope(costs):.3f}")
        found += costs
    about: dict[str, Any] = {"processor": platform.machine(), "torch": torch.__version__, "threads": 1}
    results = [{**asdict(case), **asdict(cost)} for case, cost in found]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
