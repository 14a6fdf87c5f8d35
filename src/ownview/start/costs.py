"""What a method will take on some data and on this machine: operations counted beforehand, speed measured at once.

Counts are those of the parts that grow: solving items by items, scores of everybody for all items, passes over rows.
What is counted is divided by what the machine's cores do in a second of their own time: other work that the machine has
at this moment may be over in the next, and plans nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch

from ownview.config.settings import Value
from ownview.data.splitting.splits import Split
from ownview.parts.pairs.positive_definite import solved_in
from ownview.parts.pairs.tail import left_to_solve

_SIDE = 1536
"""Of the matrices that speed is measured by: a second of one core for all of them."""

_SIDE_BY_SIDE = 0.9
"""Share of its speed that a core has beside others on the same work."""

_PASSES = 8.0
"""Elementwise operations on every score when it is ranked: made, looked through, hidden, compared twice, the best."""

_BEGIN = 1.0
"""Seconds until a run has read its data and until its folder is written, beside what grows with rows."""

_ROW = 4e-6
"""Seconds of the same for each row."""

_MEASURED = 2.0
"""Rankings of everybody in a run that is fitted at once: validation, and test with the lists that are kept."""

_READ = 2.0
"""Elementwise operations on every number of a row of weights that a history reads."""

_WRITTEN = 4e-9
"""Seconds for each byte of a model that is written, and read again for its fingerprint."""

_TRAINED_NUMBERS = 32
_SAMPLES = 5
"""A positive and its negatives."""

_STEPS = 200.0
"""Elementwise operations on each number of a sample in a step of training: forward, backward, optimiser."""

_CLIENT = 1.1e-4
"""Seconds of a client and round beside its samples."""

_OWN_TABLE = 8.0
"""Elementwise operations on every number of a table that a client scores with by itself: made, mixed, multiplied."""

_BESIDE = 1.5
"""What the rank form takes in all, in times of its products: 153 s with rank 512 where these were 101."""

_WORDS = 12.0
"""Elementwise operations on every number of a masked upload: laid out, rounded where there is something, added up."""


@dataclass(frozen=True)
class Speed:
    """Speed of all cores of this machine, idle otherwise.

    Args:
        factor: operations a second while a matrix is factored and inverted in double precision, n^3 in all.
        single: the same in single precision.
        product: operations a second of a product of matrices in single precision, 2 n^3 in all.
        elements: numbers a second that one elementwise operation goes through.
    """

    factor: float
    single: float
    product: float
    elements: float

    @classmethod
    def measured(cls) -> Speed:
        """By matrices that are small, and large enough for a rate that larger ones have, in CPU time of one core."""
        return cls(*(rate * (1 + _SIDE_BY_SIDE * (torch.get_num_threads() - 1)) for rate in _rates_of_one_core()))

    def solving(self, items: int) -> float:
        """Seconds that EASE^R takes of so many items that are solved for, in the precision that they are solved in."""
        return items**3 / (self.factor if solved_in(torch.float32, items) is torch.float64 else self.single)


@dataclass(frozen=True)
class Cost:
    """seconds: of a whole run, measurements included; memory: bytes at its peak beside the data."""

    seconds: float
    memory: float


def ranking(split: Split, speed: Speed) -> float:
    """Seconds that everybody's scores of all items take to be ranked once, without what makes them."""
    return split.num_users * split.num_items * _PASSES / speed.elements


def cost_of(method: str, settings: Mapping[str, Value], rounds: int, measured: int, split: Split, speed: Speed) -> Cost:
    """What a run takes; of methods that are not counted here, as if they trained in rounds.

    Args:
        method: its name.
        settings: that differ from its defaults.
        rounds: of training, where the method needs so many.
        measured: rounds of training from one measurement to the next.
        split: the data: n users, m items, r rows.
        speed: of the machine.
    """
    n, m, r = split.num_users, split.num_items, len(split.train.values)
    begins = _BEGIN + _ROW * r
    ranked = _MEASURED * ranking(split, speed)
    histories = _MEASURED * r * m * _READ / speed.elements
    square = 4.0 * m * m
    solving = speed.solving(left_to_solve(torch.bincount(split.train.values, minlength=m)))
    match method:
        case "popularity":
            seconds, memory = 0.0, 8.0 * m
        case "markov":
            seconds, memory = _MEASURED * n * m / speed.elements, 16.0 * r
        case "text":
            # Words of every item against those of all others, in numbers that are mostly 0.
            seconds, memory = 20.0 * m * m / speed.elements + histories, 6_000.0 * m
        case "ease":
            seconds, memory = solving + histories + square * _WRITTEN, 3 * square
        case "fedease":
            # The sums stay beside the weights, and both are written.
            seconds, memory = solving + 2 * histories + 2 * square * _WRITTEN, 4 * square
        case "fednext" if settings.get("rank"):
            seconds, memory = _rank_form(settings, split, speed)
        case "fednext":
            wide = 3 * m
            seconds, memory = 2 * wide**3 / speed.single + 6 * histories, 40.0 * wide**2
        case _:
            numbers = rounds * r * _SAMPLES * _TRAINED_NUMBERS
            trained = rounds * n * _CLIENT + numbers * _STEPS / speed.elements
            more = (rounds // measured - 1) * ranking(split, speed)
            # Every client scores with a table of its own, so that no product serves several.
            scored = (rounds // measured + 1) * n * m * _OWN_TABLE * _TRAINED_NUMBERS / speed.elements
            seconds, memory = trained + more + scored, 8.0 * r * _SAMPLES * _TRAINED_NUMBERS
    return Cost(begins + ranked + seconds, memory)


def masking(split: Split, speed: Speed) -> Cost:
    """What a simulation of masked sums takes beside its method: whole numbers for half of items by items, everybody."""
    numbers = split.num_items * (split.num_items + 1) / 2
    return Cost(split.num_users * numbers * _WORDS / speed.elements, 64.0 * numbers)


def _rank_form(settings: Mapping[str, Value], split: Split, speed: Speed) -> tuple[float, float]:
    """Seconds and bytes: item vectors in rounds, sums of pasts by targets, and a product for everybody's scores."""
    n, m, r = split.num_users, split.num_items, len(split.train.values)
    rank, scales = settings["rank"], settings.get("scales", (1.0, 4.0, 20.0))
    assert isinstance(rank, int)
    assert isinstance(scales, tuple)
    wide = rank * (len(scales) + 1)
    vectors = 6 * (2 * r * rank * (r / n) + 4 * m * rank**2) / speed.product
    sums = 4 * r * wide * (wide / speed.product + 4 / speed.elements)
    scored = _MEASURED * 2.0 * n * m * wide / speed.product
    return _BESIDE * (vectors + sums + wide**3 / speed.single + scored), 24.0 * m * wide


@cache
def _rates_of_one_core() -> tuple[float, float, float, float]:
    """What `Speed` holds, of one core; measured once in a process."""
    draw = torch.Generator().manual_seed(0)
    left = torch.rand((_SIDE, _SIDE), generator=draw)
    definite = left @ left.T
    definite.diagonal().add_(_SIDE)
    numbers = torch.rand(1 << 22, generator=draw)
    cores = torch.get_num_threads()

    def factored(kind: torch.dtype) -> float:
        matrix = definite.to(kind)
        return _SIDE**3 / _seconds(lambda: torch.cholesky_inverse(torch.linalg.cholesky(matrix)))

    try:
        torch.set_num_threads(1)
        return (
            factored(torch.float64),
            factored(torch.float32),
            2 * _SIDE**3 / _seconds(lambda: left @ left),
            len(numbers) / _seconds(lambda: numbers + 1),
        )
    finally:
        torch.set_num_threads(cores)


def _seconds(work: Callable[[], object]) -> float:
    """CPU-seconds, the better of two tries: the first meets cold memory."""
    taken = []
    for _ in range(2):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return max(min(taken), 1e-6)
