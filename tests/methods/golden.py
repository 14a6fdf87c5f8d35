"""A world of two clients and four items that leaves no choice to chance, and the arithmetic to work it out by hand.

Client 0 has items 0 and 1, client 1 has items 1 and 2, and with two negatives a positive every client must draw exactly
the two items it does not have. So every batch is known: client 0: positives 0, 1 once each, negatives 2, 3 twice each;
client 1: positives 1, 2, negatives 0, 3 twice each.

In the uneven world clients differ in size and leave rows untouched, again without a choice: client 0 has items 0 and 1
and may draw only item 2; client 1 has item 1 and may draw only item 3; one negative a positive. So client 0 has four
samples and never sees item 3, client 1 has two and never sees items 0 and 2.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ownview import FederationOptions
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.tables.overlays import OverlayTables
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from tests.questions import split_by_hand

POSITIVES = {0: (0, 1), 1: (1, 2)}
ITEMS = 4

UNEVEN_POSITIVES = {0: (1, 1, 0, 0), 1: (0, 1, 0, 0)}
UNEVEN_COUNTS = {0: (1, 1, 2, 0), 1: (0, 1, 0, 1)}
"""In the uneven world, how often each item stands in a client's batch: as a positive, and at all."""

UNEVEN_SHARES = (2 / 3, 1 / 3)
"""Of all samples."""

ENVELOPE = 16
"""Bytes of a message before its first table: what it is, its round, the client's samples, and how many tables."""

Vector = list[float]
Matrix = list[Vector]


def heading(name: str, axes: int) -> int:
    """Bytes of a table in a message before its values: its name and how long that is, its form, and its axes."""
    return 1 + len(name) + 4 + 4 * axes


def golden_split() -> Split:
    data = Interactions.from_rows("golden", np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 1, 2, 3]))
    train = Ragged.from_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), 2)
    return split_by_hand(data, train, [2, 3], [3, 0])


def federation(method: Federated, engine: str, **options: object) -> Federation:
    split = golden_split()
    place = Machine(torch.device("cpu"), torch.float64, engine=engine)
    return Federation(method, split, split.training_items(), FederationOptions.of(options), seed=3, machine=place)


def uneven_split() -> Split:
    data = Interactions.from_rows("uneven", np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 1, 2, 3]))
    train = Ragged.from_pairs(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    return split_by_hand(data, train, [2, 3], [3, 0])


def uneven_federation(method: Federated, engine: str, **options: object) -> Federation:
    never_drawn = Ragged.from_pairs(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 3, 0, 1, 2]), 2)
    place = Machine(torch.device("cpu"), torch.float64, engine=engine)
    return Federation(method, uneven_split(), never_drawn, FederationOptions.of(options), seed=3, machine=place)


def uneven_errors(client: int, scores: Vector) -> Vector:
    """d(mean loss)/d(score of each item) in the uneven world."""
    counts, positives = UNEVEN_COUNTS[client], UNEVEN_POSITIVES[client]
    return [(counts[i] * sigmoid(scores[i]) - positives[i]) / sum(counts) for i in range(ITEMS)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def error(client: int, item: int, score: float) -> float:
    """d(mean loss)/d(score of the item): sum over its samples of (sigmoid - label), over the six samples."""
    if item in POSITIVES[client]:
        return (sigmoid(score) - 1) / 6
    return 2 * sigmoid(score) / 6


def dot(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


class AdamByHand:
    """Adam of one number: m, v and the step count."""

    def __init__(self) -> None:
        self.m = self.v = 0.0
        self.t = 0

    def move(self, x: float, gradient: float, rate: float) -> float:
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        first, second = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return x - rate * first / (math.sqrt(second) + 1e-8)


def scores_of_all(one: Federation) -> Matrix:
    found: Matrix = scorer_of(one).scores(torch.arange(2), None).tolist()
    return found


def touched_rows(one: Federation, number: int) -> list[int]:
    """How many items the samples of each client are about in a round."""
    samples = one.work.samples(number, torch.arange(one.world.num_clients))
    alone = (samples.alone(k) for k in range(one.world.num_clients))
    return [len(set(mine.items[mine.rows].tolist())) for mine in alone]


def changed_rows(tables: OverlayTables) -> Tensor:
    """[n, m] True where a client has a row of its own, as a checkpoint tells."""
    packed = {name: value.cpu() for name, value in tables.pack().items()}
    marks = torch.zeros(len(packed["counts"]), tables.num_items, dtype=torch.bool)
    marks[torch.repeat_interleave(packed["counts"]), packed["items"].long()] = True
    return marks
