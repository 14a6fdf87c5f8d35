"""The weights of a blend, from wins on validation summed over clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, permutations
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.data.interactions import FloatArray
from ownview.data.questions import Question
from ownview.data.sittings import DAY
from ownview.evaluation.metrics import ndcg
from ownview.evaluation.ranking import Ranker

_STEPS = {2: 20, 3: 10, 4: 7, 5: 5, 6: 4, 7: 3, 8: 3}
"""By number of parts: steps of the lattice from 0 to 1. Some two hundred points at most."""

_FINEST = 1 / 60
"""Weight below which nothing more is moved from part to part."""

_MOVES = 3
"""Of one size, one after another, before the next size is tried."""

_NOTHING = 1e-9
"""Weight that is left by rounding alone."""

_FEWEST = 50
"""Clients behind a pause, and not, from which on both choose for themselves."""

_K = 10


Ask = Callable[[FloatArray], FloatArray]
"""[G, P] weights to [k, G] what every asked user wins with them."""


class Standardised(Interface):
    """Scores of several parts."""

    def parts(self, users: Tensor) -> Tensor:
        """[P, B, m] each part's scores, standardised over the items of each user."""


class Remembered:
    """Scores that are asked for again and again: those of as many users as fit are kept, others are made anew.

    Args:
        scorer: makes them.
        room: bytes that may be kept.
    """

    def __init__(self, scorer: Standardised, room: int) -> None:
        self.scorer, self.room = scorer, room
        self.kept: dict[tuple[int, ...], Tensor] = {}

    def parts(self, users: Tensor) -> Tensor:
        """[P, B, m] as the scorer has them; the same users must come together every time."""
        who = tuple(users.tolist())
        if who in self.kept:
            return self.kept[who]
        made = self.scorer.parts(users)
        if made.nbytes <= self.room:
            self.kept[who] = made
            self.room -= made.nbytes
        return made


def lattice(parts: int) -> FloatArray:
    """[G, P] all weights that are multiples of a step and add up to 1."""
    steps = _STEPS[parts]
    bars = np.array(list(combinations(range(steps + parts - 1), parts - 1)))
    ends = np.full((len(bars), 1), steps + parts - 1)
    edges = np.concatenate([np.full((len(bars), 1), -1), bars, ends], axis=1)
    return np.asarray((np.diff(edges, axis=1) - 1) / steps)


def wins(scorer: Standardised, ranker: Ranker, points: FloatArray) -> FloatArray:
    """[k, G] NDCG@10 of every asked user under all weights."""
    found = []
    for part in torch.split(torch.arange(len(ranker.users), device=ranker.device), ranker.block):
        some = ranker.of(part)
        stacked = scorer.parts(some.users)
        weights = torch.from_numpy(points).to(stacked)
        found.append([ndcg(some.rank(_Given(torch.tensordot(one, stacked, 1))), _K) for one in weights])
    return np.concatenate([np.stack(block, axis=1) for block in found])


def after_pause(question: Question, pause_days: float) -> npt.NDArray[np.bool_]:
    """[n] whether more than a pause lies between a user's last known item and now; False without times."""
    known = question.known
    if known.times is None or known.now is None:
        return np.zeros(len(known.items), dtype=bool)
    late = (known.now - known.last > round(pause_days * DAY)) & (known.items.lengths > 0)
    return late.cpu().numpy()


def chosen(won: FloatArray, late: npt.NDArray[np.bool_], points: FloatArray) -> FloatArray:
    """[2, P] the best weights for clients that are not, and that are, behind a pause; the first among equals.

    Args:
        won: [k, G].
        late: [k].
        points: [G, P].
    """
    groups = (~late, late)
    apart = all(int(one.sum()) >= _FEWEST for one in groups)
    means = [(won[one] if apart else won).mean(axis=0) for one in groups]
    return np.stack([points[int(mean.argmax())] for mean in means])


def searched(ask: Ask, late: npt.NDArray[np.bool_], parts: int) -> tuple[FloatArray, int]:
    """[2, P] the best weights of both groups, and how many points were asked about.

    The lattice comes first, then ever smaller moves from part to part.

    From the best point found so far all moves of one size are asked about at once, and the best of them is made, as
    long as one is better; then moves of half the size. Every time clients send one number a point.
    """
    points = lattice(parts)
    found, tried = chosen(ask(points), late, points), len(points)
    size = 1 / _STEPS[parts] / 2
    while size >= _FINEST:
        for _ in range(_MOVES):
            points = moved(found, size)
            tried += len(points)
            better = chosen(ask(points), late, points)
            if np.array_equal(better, found):
                break
            found = better
        size /= 2
    return found, tried


def moved(found: FloatArray, size: float) -> FloatArray:
    """[G, P] these weights, and each with `size`, or what is left, moved from one part to another.

    Args:
        found: [K, P].
        size: of a move.
    """
    points = list(np.unique(found, axis=0))
    for weights in list(points):
        for giver, taker in permutations(range(len(weights)), 2):
            amount = min(size, float(weights[giver]))
            if amount > _NOTHING:
                one = weights.copy()
                one[giver], one[taker] = weights[giver] - amount, weights[taker] + amount
                points.append(one)
    return np.stack(points)


def own_choice(won: FloatArray, late: npt.NDArray[np.bool_], points: FloatArray, own: float) -> FloatArray:
    """[k, P] every client's best weights by the mean of its group plus `own` times its own wins."""
    means = np.stack([won[late == late[user]].mean(axis=0) for user in range(len(won))])
    return np.asarray(points[(means + own * won).argmax(axis=1)])


class _Given:
    """Scores that were made before."""

    def __init__(self, every: Tensor) -> None:
        self.every = every

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, m]."""
        return self.every if items is None else self.every.gather(1, items)


def at_once(ranker: Ranker, parts: int) -> Ranker:
    """The same questions in smaller blocks, so that the scores of all parts take as much room as one model's."""
    return replace(ranker, block=max(1, ranker.block // (2 * parts)))
