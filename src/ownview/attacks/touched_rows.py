"""Touched rows of one upload: a client trains its own items and drawn negatives; all other rows do not move."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.attacks.evidence import Evidence
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES = "touched rows", "one upload"


def guess(view: ServerView) -> ItemGuess | Inapplicable:
    """Claims every item whose row moved; the larger the move, the likelier."""
    found = view.first()
    if not found:
        return Inapplicable("no message says anything of single items")
    if all(bool(one.touched.all()) for one in found):
        return Inapplicable("every row of every upload moved, so that none stands out")
    clients = torch.tensor([one.client for one in found])
    return ItemGuess(clients, torch.stack([one.touched for one in found]), torch.stack([sizes(one) for one in found]))


def sizes(one: Evidence) -> Tensor:
    """[m] 1 for a touched row and more the further it moved, up to 2; 0 for all others."""
    parts = [change.double().norm(dim=1) for change in one.changes.values()]
    parts += [count.double().abs() for count in one.counts.values()]
    total = torch.zeros(len(one.touched), dtype=torch.float64)
    for part in parts:
        total += part / part.max().clamp(min=1e-30)
    return one.touched * (1 + total / max(len(parts), 1))
