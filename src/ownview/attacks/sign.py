"""The sign attack: what an item's row moves along is the client's own vector, towards its items and away from others.

Changes of rows are nearly multiples of one direction, whichever the model is: the gradient of a score by an item's row
is a vector of the client's, and the loss gives it a sign. The first principal direction of the changed rows parts them
in two; negatives outnumber positives, so the smaller side is the client's items. No shadow model, no training.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """Claims the smaller side; under noise, where every row moved, as many of the likelier side as samples imply."""
    found = [one for one in view.first() if one.changes and bool(one.touched.any())]
    if not found:
        return Inapplicable("no upload holds rows of an item table")
    noisy = view.noisy and all(one.filled for one in found)
    scores = _under_noise(found) if noisy else torch.stack([_smaller_side(one) for one in found])
    negatives = view.negatives if noisy else 0
    claimed = torch.stack([_claimed(one, own, negatives) for one, own in zip(found, scores, strict=True)])
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
    return max((principal(change, one.touched) for change in one.changes.values()), key=_explained)


def _smaller_side(one: Evidence) -> Tensor:
    """[m] places along the upload's own direction, turned so that fewer rows lie on the upper side.

    Where all lie on one side nothing was pushed away, and all are drawn. Where every row moved, nothing was left out
    either, and the upper side is that of the few that moved far.
    """
    places = clearest(one).places * one.touched
    above, below = int((places > 0).sum()), int((places < 0).sum())
    if one.filled:
        return places if float((places**3).sum()) >= 0 else -places
    smaller = above <= below if min(above, below) else above > below
    return places if smaller else -places


def _under_noise(found: Sequence[Evidence]) -> Tensor:
    """[C, m] places along one direction for all, turned so that they add up to less than 0.

    Noise drowns the direction of one upload and not that of many, and clients that began with the same values still
    have much the same one. It leaves no smaller side, but adds up to nothing: what is left is that more rows were
    pushed away than drawn.
    """
    names = [name for name in found[0].changes if all(name in one.changes for one in found)]
    pooled = {name: torch.cat([one.changes[name] for one in found]) for name in names}
    best = max((principal(rows, torch.ones(len(rows), dtype=torch.bool)) for rows in pooled.values()), key=_explained)
    places = best.places.reshape(len(found), -1) * torch.stack([one.touched for one in found])
    return places if float(places.sum()) <= 0 else -places


def _explained(one: Principal) -> float:
    return one.explained


def _claimed(one: Evidence, scores: Tensor, negatives: int) -> Tensor:
    """[m] the upper side; of it as many as the client's samples imply, where negatives a positive are given."""
    likely = scores > 0
    if not (one.samples and negatives):
        return likely
    count = min(max(one.samples // (1 + negatives), 1), len(scores))
    return likely & (scores >= scores.topk(count).values[-1])
