"""FedNext in rank form on many items: CPU-seconds and memory by the number of interactions.

    python -m benchmarks.next_rank                                      # 27 CPU-minutes and 3.4 GB
    python -m benchmarks.next_rank --worlds 2000x17626x50 --rank 128    # CLIENTSxITEMSxITEMS-OF-A-CLIENT; seconds

Worlds are generated, with times and pauses. A case is a whole training, from nothing to a model, with 8 GB allowed, in
a process of its own. Item vectors are found in `iterations` rounds, and one more sums and solves.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.engine import peak_memory
from benchmarks.measuring import apart
from benchmarks.worlds import crowd, in_sittings
from ownview.base.files import write_text
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.methods.fednext import FedNext
from ownview.round.federation import Federation

WORLDS = ("10000x17626x50", "2000x100000x50", "10000x100000x50", "5000x100000x100", "100000x100000x50")


@dataclass(frozen=True)
class Case:
    """A world and the settings: so many clients with `each` items of all `items`, vectors of length `rank`."""

    clients: int
    items: int
    each: int
    rank: int
    threads: int

    @property
    def interactions(self) -> int:
        """In the world."""
        return self.clients * self.each


@dataclass(frozen=True)
class Cost:
    """What the training took.

    Args:
        vectors: CPU-seconds of the rounds that find item vectors.
        sums: CPU-seconds of the round that sums pasts and solves.
        clock: seconds of the clock, all rounds; other work on the machine counts here.
        peak_bytes: of the process, the world and PyTorch included.
        up: bytes of a client's largest message, the mean over clients.
    """

    vectors: float
    sums: float
    clock: float
    peak_bytes: int
    up: int

    @property
    def seconds(self) -> float:
        """Of CPU, in all."""
        return self.vectors + self.sums


def measure(case: Case) -> Cost:
    """Run one case; meant for a fresh process."""
    torch.set_num_threads(case.threads)
    split = in_sittings(crowd(case.clients, case.items, case.each))
    method = FedNext(rank=case.rank)
    one = Federation(method, split, split.train, FederationOptions(), 0, machine("cpu", "8GB"))
    begun, seconds, up = time.perf_counter(), [], 0
    for number in range(1, method.enough + 1):
        start = time.process_time()
        up = max(up, one.round(number).bytes_up)
        seconds.append(time.process_time() - start)
        print(f"  round {number}: {seconds[-1]:.1f} CPU-seconds", file=sys.stderr, flush=True)
    return Cost(sum(seconds[:-1]), seconds[-1], time.perf_counter() - begun, peak_memory("cpu"), up)


def growth(found: Sequence[tuple[Case, Cost]]) -> list[str]:
    """Of worlds with equally many items: seconds by interactions, as a line through the smallest and the largest."""
    said = []
    for items in dict.fromkeys(case.items for case, _ in found):
        points = sorted((case.interactions, cost.seconds) for case, cost in found if case.items == items)
        (few, less), (many, more) = points[0], points[-1]
        if few < many:
            each = (more - less) / (many - few)
            said.append(f"{items:,} items: {less - each * few:.0f} CPU-seconds and {each * 1e6:.0f} us an interaction")
    return said


def line(case: Case, cost: Cost) -> str:
    """A row of the table."""
    return (
        f"{case.clients:>9,}{case.items:>9,}{case.each:>6}{case.rank:>6}{cost.vectors:>10.0f}{cost.sums:>8.0f}"
        f"{cost.clock:>8.0f}{cost.peak_bytes / 1e9:>9.2f}{cost.up:>12,}"
    )


HEAD = (
    f"{'clients':>9}{'items':>9}{'each':>6}{'rank':>6}{'vectors s':>10}{'sums s':>8}{'clock':>8}{'peak GB':>9}"
    f"{'B up':>12}"
)


def world(text: str) -> tuple[int, int, int]:
    """CLIENTSxITEMSxEACH as numbers."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected CLIENTSxITEMSxEACH such as {WORLDS[0]}")
    clients, items, each = map(int, text.split("x"))
    if 2 * each > items:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at least {2 * each} items, twice those of a client")
    return clients, items, each


def main(given: Sequence[str] | None = None) -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", type=world, default=[world(text) for text in WORLDS])
    parser.add_argument("--rank", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON; nothing is written without")
    asked = parser.parse_args(given)
    found: list[tuple[Case, Cost]] = []
    print(HEAD)
    for clients, items, each in asked.worlds:
        case = Case(clients, items, each, asked.rank, asked.threads)
        found.append((case, apart(measure, case)))
        print(line(*found[-1]), flush=True)
    for said in growth(found):
        print(said)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        about = {"processor": platform.machine(), "torch": torch.__version__}
        results = [{**asdict(case), **asdict(cost)} for case, cost in found]
        write_text(asked.out, json.dumps({"about": about, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
