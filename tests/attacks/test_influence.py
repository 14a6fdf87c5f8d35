"""The influence certificate, checked by brute force: no history of at most three items exceeds it."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor

from ownview.attacks.dishonest.influence import Certificate, certificate
from ownview.base.randomness import generator
from ownview.parts.pairs.positive_definite import ease_weights

PEOPLE, ITEMS, LIST = 60, 18, 10


def _kernel(history: tuple[int, ...], nearness: float) -> Tensor:
    """[m, m] what a client with this history adds."""
    at, places = torch.tensor(history), torch.arange(len(history), dtype=torch.float64)
    matrix = torch.zeros(ITEMS, ITEMS, dtype=torch.float64)
    matrix[at[:, None], at] = torch.exp(-(places[:, None] - places).abs() / nearness)
    return matrix


def _world(nearness: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """G, x of everybody, and what is no candidate: four items each."""
    random = generator(seed, "histories")
    drawn = [torch.randperm(ITEMS, generator=random)[:4] for _ in range(PEOPLE)]
    gram = torch.stack([_kernel(tuple(one.tolist()), nearness) for one in drawn]).sum(0)
    people, never = torch.zeros(PEOPLE, ITEMS, dtype=torch.float64), torch.zeros(PEOPLE, ITEMS, dtype=torch.bool)
    for person, items in enumerate(drawn):
        people[person, items] = torch.tensor([0.2, 0.4, 0.7, 1.0], dtype=torch.float64)
        never[person, items] = True
    return gram, people, never


def _lists(gram: Tensor, regularization: float, people: Tensor, never: Tensor) -> Tensor:
    """[n, m] whether an item is in a list."""
    scores = (people @ ease_weights(gram, regularization)).masked_fill(never, -torch.inf)
    return torch.zeros_like(never).scatter_(1, scores.topk(LIST, dim=1).indices, True)


@pytest.mark.parametrize(("regularization", "nearness"), [(200.0, 16.0), (1000.0, 2.0), (30.0, torch.inf)])
def test_no_history_of_at_most_three_items_exceeds_the_certificate(regularization: float, nearness: float) -> None:
    gram, people, never = _world(nearness, seed=1)
    before = _lists(gram, regularization, people, never)
    changed = entered = 0
    for size in (1, 2, 3):
        for history in permutations(range(ITEMS), size):
            new = _lists(gram + _kernel(history, nearness), regularization, people, never) & ~before
            changed, entered = max(changed, int(new.any(1).sum())), max(entered, int(new.sum(0).max()))
        claimed = certificate(gram, regularization, people, never, size)
        assert changed <= claimed.changed * PEOPLE + 1e-9
        assert entered <= claimed.entered * PEOPLE + 1e-9
    assert changed > 0, "a world in which nothing moves shows nothing"


def test_it_says_something_where_one_history_is_little() -> None:
    gram, people, never = _world(16.0, seed=1)
    assert certificate(gram, 1000.0, people, never, 1).entered < 0.5
    assert certificate(1e6 * torch.eye(ITEMS, dtype=torch.float64) + gram, 1.0, people, never, 3).changed < 1.0


def test_it_claims_nothing_where_bounds_do_not_hold() -> None:
    _, people, never = _world(16.0, seed=1)
    assert certificate(torch.zeros(ITEMS, ITEMS), 0.1, people, never, 3) == Certificate(3, PEOPLE, 1.0, 1.0)
