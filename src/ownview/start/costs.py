"""What a method will take on some data and on this machine: operations counted beforehand, speed measured at once.

Counts are those of the parts that grow: solving items by items, scores of everybody for all items, passes over rows.
What is counted is divided by what this machine does at this moment, whoever else works on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from ownview.config.settings import Value
from ownview.data.splits import Split

_SIDE = 768
"""Of the matrices that speed is measured by: a tenth of a second on two cores."""

_PASSES = 6.0
"""Times that every score is looked at when it is ranked: made, hidden where known, compared, counted, sorted."""

_BEGIN = 1.0
"""Seconds until a run has read its data and until its folder is written."""

_MEASURED = 3.0
"""Rankings of everybody in a run: validation, test, and the lists that are kept."""

_TRAINED_NUMBERS = 32
_SAMPLES = 5
"""A positive and its negatives."""

_STEPS = 120.0
"""Elementwise operations on each number of a sample in a step of training: forward, backward, optimiser."""

_WORDS = 12.0
"""Elementwise operations on every number of a masked upload: laid out, rounded where there is something, added up."""


@dataclass(frozen=True)
class Speed:
    """Of this machine, now.

    Args:
        factor: multiplications and additions a second while a matrix is factored and inverted, n^3 in all.
        product: the same of a product of matrices, 2 n^3 in all.
        elements: numbers a second that one elementwise operation goes through.
    """

    factor: float
    product: float
    elements: float

    @classmethod
    def measured(cls) -> Speed:
        """By small matrices, the best of two tries each."""
        draw = torch.Generator().manual_seed(0)
        left = torch.rand((_SIDE, _SIDE), generator=draw)
        definite = (left @ left.T).double()
        definite.diagonal().add_(_SIDE)
        numbers = torch.rand(1 << 22, generator=draw)

        def factored() -> object:
            return torch.cholesky_inverse(torch.linalg.cholesky(definite))

        return cls(
            _SIDE**3 / _seconds(factored),
            2 * _SIDE**3 / _seconds(lambda: left @ left),
            len(numbers) / _seconds(lambda: numbers + 1),
        )


@dataclass(frozen=True)
class Cost:
    """seconds: of a whole run, measurements included; memory: bytes at its peak beside the data."""

    seconds: float
    memory: float


def cost_of(method: str, settings: Mapping[str, Value], rounds: int, split: Split, speed: Speed) -> Cost:
    """What a run takes; of methods that are not counted here, as if they trained in rounds.

    Args:
        method: its name.
        settings: that differ from its defaults.
        rounds: of training.
        split: the data: n users, m items, r rows.
        speed: of the machine.
    """
    n, m, r = split.num_users, split.num_items, len(split.train.values)
    ranking = _BEGIN + _MEASURED * n * m * _PASSES / speed.elements
    histories = _MEASURED * r * m / speed.elements
    match method:
        case "popularity":
            seconds, memory = 0.0, 8.0 * m
        case "markov":
            seconds, memory = histories / max(r / n, 1), 4.0 * m * m
        case "text":
            # Words of every item against those of all others, in numbers that are mostly 0.
            seconds, memory = 20.0 * m * m / speed.elements + histories, 6_000.0 * m
        case "ease":
            everybody = _MEASURED * 2.0 * n * m * m / speed.product
            seconds, memory = m**3 / speed.factor + everybody, 16.0 * m * m
        case "fedease":
            seconds, memory = m**3 / speed.factor + histories, 16.0 * m * m
        case "fednext" if settings.get("rank"):
            seconds, memory = _rank_form(settings, split, speed)
        case "fednext":
            wide = 3 * m
            seconds, memory = 2 * wide**3 / speed.factor + 3 * histories, 40.0 * wide**2
        case _:
            trained = rounds * r * _SAMPLES * _TRAINED_NUMBERS * _STEPS / speed.elements
            measured = rounds * n * m * (2 * _TRAINED_NUMBERS / speed.product + _PASSES / speed.elements)
            seconds, memory = trained + measured, 8.0 * r * _SAMPLES * _TRAINED_NUMBERS
    return Cost(seconds + ranking, memory)


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
    return vectors + sums + wide**3 / speed.factor + scored, 24.0 * m * wide


def _seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(2):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return max(min(taken), 1e-6)
