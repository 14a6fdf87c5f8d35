"""Does a model learn? Asked in a world whose answer is known, with room for another machine's rounding."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.baselines.central import Central
from ownview.data.splits import Split
from ownview.federation.round import Federation
from ownview.federation.scoring import scorer_of
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.roles import PERSONAL
from ownview.testing.shared_checks import at_work, rounds_of, scores_of
from ownview.testing.worlds import block_world, federation

_GROUPS, _USERS, _ITEMS, _PER_USER = 2, 20, 20, 12
_TOP = 5
_ENOUGH = 0.6
"""Share of the own group's items among the first `_TOP` recommended. Chance is 1/3, and clients that share nothing
stay below 0.45 however long they train."""
_MOST_ROUNDS, _LOOK_EVERY = 60, 5
"""Rounds until a model must have got there; the slowest needed 25, and how many it takes may hang on rounding."""
_FALLEN = 0.7
"""Share of the first round's loss that the training loss must fall below."""


def learns(method: Federated) -> None:
    """In a world of groups, what is shared teaches users their group's items; alone they can only fit training.

    Asked only of methods in which what a client receives replaces what it had: one that goes on from its own table may
    fit its training samples so closely that what is shared teaches it nothing, which is no fault of the code. Of that
    one only the loss is asked.
    """
    split = _world()
    one = federation(method, split, dtype=torch.float32)
    fits_alone = _fits_alone(one)
    first = one.round(1).loss
    number, loss, fell = 1, first, first is None
    while number < (method.enough or _MOST_ROUNDS):
        number += 1
        loss = one.round(number).loss
        fell = loss is None or (first is not None and loss < _FALLEN * first)
        if fell and fits_alone:
            return
        if fell and number % _LOOK_EVERY == 0 and _share(_scores(one), split) >= _ENOUGH:
            return
    reached = _share(_scores(one), split)
    assert reached >= _ENOUGH, f"after {number} rounds {reached:.0%} of the first {_TOP} are the group's"
    assert fell, f"the training loss went from {first:.3f} to {loss:.3f} only"


def central_learns(model: Central) -> None:
    """In a world of groups it recommends a user the items of the group."""
    split = _world()
    one, reached = at_work(model, split), 0.0
    for number in range(1, rounds_of(model, _MOST_ROUNDS) + 1):
        one.round(number)
        last = number == rounds_of(model, _MOST_ROUNDS)
        if (number % _LOOK_EVERY == 0 or last) and (reached := _share(scores_of(one, split), split)) >= _ENOUGH:
            return
    raise AssertionError(f"{reached:.0%} of the first {_TOP} recommended are the group's; asked is {_ENOUGH:.0%}")


def _world() -> Split:
    return block_world(_GROUPS, _USERS, _ITEMS, _PER_USER)


def _fits_alone(one: Federation) -> bool:
    params, work = one.client.params.values(), one.client.work
    received = any(param.from_server for param in params)
    return not isinstance(work, Reporting) and (not received or any(param.role is PERSONAL for param in params))


def _scores(one: Federation) -> Tensor:
    return scorer_of(one).scores(torch.arange(one.world.num_clients), None)


def _share(scores: Tensor, split: Split) -> float:
    """Of the `_TOP` best items that a user does not have in training, the share of its group's, the mean over users."""
    items = split.data.items[torch.arange(split.num_items)].astype(int) // _ITEMS
    users = split.data.users[torch.arange(split.num_users)].astype(int) // _USERS
    mine = torch.as_tensor(items)[None] == torch.as_tensor(users)[:, None]
    known = split.training_items()
    for user in range(split.num_users):
        scores[user, known.of(user)] = -torch.inf
    return float(mine.gather(1, scores.topk(_TOP).indices).double().mean())
