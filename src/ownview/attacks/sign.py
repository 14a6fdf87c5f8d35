"""The sign attack: what an item's row moves along is the client's own vector, towards its items and away from others.

Changes of rows are nearly multiples of one direction, whichever the model is: the gradient of a score by an item's row
is a vector of the client's, and the loss gives it a sign. The first principal direction of the changed rows parts them
in two; negatives outnumber positives, so the smaller side is the client's items. No shadow model, no training.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.attacks.evidence import Evidence
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES = "sign", "one upload"


@dataclass(frozen=True, eq=False)
class Principal:
    """The first principal direction of a table's changed rows.

    Args:
        direction: [d] of length 1.
        places: [m] where every row lies along it.
        explained: share of all squares that lie along it.
    """

    direction: Tensor
    places: Tensor
    explained: float


def guess(view: ServerView) -> ItemGuess | Inapplicable:
    """Claims the smaller side; under noise, where every row moved, as many of the likelier side as samples tell."""
    found = [one for one in view.first() if one.changes and bool(one.touched.any())]
    if not found:
        return Inapplicable("no upload holds rows of an item table")
    scores = torch.stack([_scores(one, noisy=view.noisy) for one in found])
    claimed = torch.stack([_claimed(one, own, view) for one, own in zip(found, scores, strict=True)])
    return ItemGuess(torch.tensor([one.client for one in found]), claimed, scores)


def principal(change: Tensor, touched: Tensor) -> Principal:
    """Of the touched rows of a change [m, d]; about 0, not about their mean."""
    rows = change.double()
    squares = rows[touched].T @ rows[touched]
    values, vectors = torch.linalg.eigh(squares)
    direction = vectors[:, -1]
    return Principal(direction, rows @ direction, float(values[-1] / values.sum().clamp(min=1e-30)))


def clearest(one: Evidence) -> Principal:
    """Of the table whose changes lie most along one direction."""
    found = [principal(change, one.touched) for change in one.changes.values()]
    return max(found, key=lambda each: each.explained)


def _scores(one: Evidence, *, noisy: bool) -> Tensor:
    """[m] places along the direction, turned so that the client's items are on the upper side."""
    places = clearest(one).places * one.touched
    # Noise has no smaller side, but it adds up to nothing: what is left is that more rows were pushed away than drawn.
    upper = (places > 0).sum() <= (places < 0).sum() if not noisy else places.sum() <= 0
    return places if bool(upper) else -places


def _claimed(one: Evidence, scores: Tensor, view: ServerView) -> Tensor:
    likely = scores > 0
    if not (view.noisy and one.samples and view.negatives):
        return likely
    count = min(max(one.samples // (1 + view.negatives), 1), len(scores))
    return likely & (scores >= scores.topk(count).values[-1])
