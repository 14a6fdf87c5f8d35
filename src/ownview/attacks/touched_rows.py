"""Touched rows of one upload: a client trains its own items and drawn negatives; all other rows do not move.

Where every row moves, and not by noise, those of own items may still stand out by how far.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.attacks.evidence import Evidence
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES = "touched rows", "one upload"


def guess(view: ServerView) -> ItemGuess | Inapplicable:
    """Claims every item whose row moved, or, where all did, those that moved far; the further, the likelier."""
    found = view.first()
    if not found:
        return Inapplicable("no message says anything of single items")
    everywhere = [_everywhere(one) for one in found]
    if all(everywhere) and view.noisy:
        return Inapplicable("every row of every upload moved, so that none stands out")
    clients, scores = torch.tensor([one.client for one in found]), torch.stack([sizes(one) for one in found])
    claimed = [_far(own) if whole else one.touched for one, own, whole in zip(found, scores, everywhere, strict=True)]
    return ItemGuess(clients, torch.stack(claimed), scores)


def _far(sizes: Tensor) -> Tensor:
    """[m] the upper of two groups, each nearer to its own mean than to that of the other."""
    border = (sizes.min() + sizes.max()) / 2
    for _ in range(20):
        upper = sizes > border
        if not bool(upper.any()) or bool(upper.all()):
            break
        border = (sizes[upper].mean() + sizes[~upper].mean()) / 2
    return sizes > border


def sizes(one: Evidence) -> Tensor:
    """[m] 1 for a row that moved and more the further, up to 2; 0 for all others."""
    parts = [change.double().norm(dim=1) for change in one.changes.values()]
    parts += [count.double().abs() for count in one.counts.values()]
    total = torch.zeros(len(one.touched), dtype=torch.float64)
    for part in parts:
        total += part / part.max().clamp(min=1e-30)
    there = torch.ones_like(one.touched) if _everywhere(one) else one.touched
    return there * (1 + total / max(len(parts), 1))


def _everywhere(one: Evidence) -> bool:
    """Whether every row moved, if only by little, and the message names none."""
    return one.filled and not one.listed
