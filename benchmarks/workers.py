"""What sharing clients out among workers costs; `python -m benchmarks.scale --ray 1 2` prints it."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.worlds import crowd
from ownview.cluster.federation import ClusterFederation
from ownview.cluster.pool import close_pools
from ownview.engine.machine import Workers, machine
from ownview.federation.options import FederationOptions
from ownview.round.federation import Federation
from ownview.seam.method import Federated

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Shared:
    """Rounds of a federation with some workers; 0 for none.

    Args:
        workers: how many.
        cpu: CPU-seconds of a round, of this process and all below it, Ray's own included; the least.
        wall: seconds of a round by the clock; the least.
        empty: seconds by the clock of a round without clients, the median; values go down and sums come up.
    """

    workers: int
    cpu: float
    wall: float
    empty: float


def measure_shared(method: Federated, workers: int, clients: int, items: int, each: int, rounds: int) -> Shared:
    """Run some rounds; meant for a fresh process."""
    torch.set_num_threads(1)
    split = crowd(clients, items, each)
    place = machine("cpu", "8GB", workers=Workers(workers) if workers else None)
    kind = ClusterFederation if workers else Federation
    one = kind(method, split, split.train, FederationOptions(), 0, place)
    if isinstance(one, ClusterFederation):
        one.fleet.saving = float("inf")  # what saving costs is set by a share of the time, and not looked at here
    one.round(1)
    cpu, wall, empty = [], [], []
    for number in range(2, rounds + 2):
        before, start = _cpu_seconds(), time.perf_counter()
        one.round(number)
        wall.append(time.perf_counter() - start)
        cpu.append(_cpu_seconds() - before)
    one.fleet.choose = lambda server, number: torch.arange(0)  # type: ignore[method-assign]
    for number in range(rounds + 2, rounds + 9):
        start = time.perf_counter()
        one.round(number)
        empty.append(time.perf_counter() - start)
    close_pools()
    return Shared(workers, min(cpu), min(wall), statistics.median(empty))


def _cpu_seconds() -> float:
    """Of this process and all below it, those that have ended left out."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            cells = status.read_text(encoding="utf-8").rpartition(")")[2].split()
            process = int(status.parent.name)
            parents[process], used[process] = int(cells[1]), (int(cells[11]) + int(cells[12])) / _TICKS
    family = {os.getpid()}
    while more := {one for one, above in parents.items() if above in family} - family:
        family |= more
    return sum(used.get(one, 0.0) for one in family)


def table(found: list[Shared]) -> str:
    """CPU efficiency: CPU-seconds of one process without workers over those of all with them."""
    base = next((one for one in found if not one.workers), found[0])
    lines = [f"{'workers':>8}{'CPU-s':>9}{'s':>8}{'CPU efficiency':>16}{'speed-up':>10}{'empty round s':>15}"]
    for one in found:
        lines.append(
            f"{one.workers:>8}{one.cpu:>9.2f}{one.wall:>8.2f}{base.cpu / one.cpu:>16.2f}"
            f"{base.wall / one.wall:>10.2f}{one.empty:>15.3f}"
        )
    return "\n".join(lines)
