"""One case of `benchmarks.methods`: a method by an engine on a world, at a bounded cost."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from benchmarks.engine import peak_memory
from benchmarks.floor import bytes_of_a_round
from benchmarks.research_style import one_round
from benchmarks.worlds import SIZES, generated, of_clients
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.method import Method

ENGINES = {"vector": 1, "loop": 20, "research": 40}
"""By name, every which client it trains."""

RESEARCH = ("fedmf", "pfedrec")
"""What there is in research style."""

LONGEST = 20.0
"""CPU-seconds after which no further round is begun."""

MOST = 3
"""Rounds that are counted, at most."""

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """What is measured.

    Args:
        method: by its registered name.
        engine: one of `ENGINES`.
        world: of `SIZES`, or a number of clients.
    """

    method: str
    engine: str
    world: str


@dataclass(frozen=True)
class Measured:
    """One method by one engine on one world.

    Args:
        case: what was measured.
        clients: in the world.
        every: which client was trained, by activity; seconds are scaled by samples to all.
        rounds: that were counted.
        first: whether they begin with the first, which is otherwise left out.
        seconds: of CPU a round, by part; the median of the rounds.
        total: all parts together; of sampled clients without the server.
        peak_memory_bytes: of the process.
        floor_bytes: that optimisers must move in a round; None where clients do not train, or are sampled.
        load: of the machine when it began; more than 1 means that others were at work.
    """

    case: Case
    clients: int
    every: int
    rounds: int
    first: bool
    seconds: dict[str, float]
    total: float
    peak_memory_bytes: int
    floor_bytes: int | None
    load: float


def measured(case: Case) -> Measured:
    """Rounds of one method; meant for a fresh process."""
    torch.set_num_threads(1)
    data = generated(case.world) if case.world in SIZES else of_clients(int(case.world))
    split = leave_one_out(data, ties="file", untimed="appearance", seed=0)
    load, every = round(os.getloadavg()[0], 1), ENGINES[case.engine]
    chosen = torch.argsort(split.train.lengths, stable=True)[every // 2 :: every]
    share = int(split.train.lengths[chosen].sum()) / int(split.train.lengths.sum())
    floor, first, lines = _research(case, split, chosen) if case.engine == "research" else _rounds(case, split, chosen)
    parts = [part for part in lines[0] if every == 1 or part != "server"]
    seconds = {part: statistics.median(line[part] for line in lines) / share for part in parts}
    total = statistics.median(sum(line[part] for part in parts) for line in lines) / share
    peak = peak_memory("cpu")
    return Measured(case, split.num_users, every, len(lines), first, seconds, total, peak, floor, load)


_Lines = tuple[int | None, bool, list[dict[str, float]]]
"""Bytes of the floor, whether the first round counts, and CPU-seconds by part of every round that does."""


def _rounds(case: Case, split: Split, clients: torch.Tensor) -> _Lines:
    """The first is left out, unless a method needs no other or it took so long that it must do."""
    method = METHODS[case.method]()
    one = Federation(method, split, split.known_items(), FederationOptions(), 0, machine("cpu", "8GB", case.engine))
    all_clients = len(clients) == split.num_users
    floor = bytes_of_a_round(one, 1) if all_clients else None
    if not all_clients:
        one.fleet.choose = lambda server, number: clients.sort().values  # type: ignore[method-assign]
    begun, lines = time.process_time(), list[dict[str, float]]()
    most = MOST + 1 if method.enough is None else method.enough
    least = 1 if case.world in SIZES else 2  # growth is seen in like rounds
    while len(lines) < least or (len(lines) < most and time.process_time() - begun < LONGEST):
        start, wall = time.process_time(), time.perf_counter()
        report = one.round(len(lines) + 1)
        # The parts are given in seconds of the clock; each has its share of the CPU's.
        share = (time.process_time() - start) / (time.perf_counter() - wall)
        lines.append({part: value * share for part, value in report.seconds.items()})
    first = method.enough is not None or len(lines) == 1
    return floor, first, lines if first else lines[1:]


def _research(case: Case, split: Split, clients: torch.Tensor) -> _Lines:
    method = METHODS[case.method]()
    assert isinstance(method, Method)
    start = time.process_time()
    one_round(case.method, split, clients.tolist(), method.negatives, method.batch_size, method.local_epochs)
    return None, True, [{"train": time.process_time() - start}]


def apart(work: Callable[..., T], *given: Any) -> T:
    """In a process of its own, which takes its memory with it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)
