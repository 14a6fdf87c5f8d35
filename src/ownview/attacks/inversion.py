"""Inversion of private vectors: the principal direction of changed rows is the client's own vector, up to its sign."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.attacks.guesses import Inapplicable, VectorGuess
from ownview.attacks.sign import principal
from ownview.attacks.view import ServerView

NAME, SEES = "inversion of the user vector", "one upload"


def guess(view: ServerView) -> VectorGuess | Inapplicable:
    """From every client's latest upload: a value sent as it is, else the clearest direction of a table that wide."""
    latest = [each[-1] for each in view.by_client().values() if bool(each[-1].touched.any())]
    found: list[dict[int, Tensor]] = []
    for one in latest:
        clear: dict[int, float] = {}
        mine: dict[int, Tensor] = {}
        for change in one.changes.values():
            along = principal(change, one.touched)
            width = len(along.direction)
            if width > 1 and along.explained > clear.get(width, 0.0):
                clear[width], mine[width] = along.explained, along.direction
        mine |= {len(value): value.double() for value in one.reported.values() if len(value) > 1}
        found.append(mine)
    widths = set[int]().union(*found)
    if not widths:
        return Inapplicable("no upload holds rows of an item table, or a value of the client's own")
    directions = {d: torch.stack([mine.get(d, torch.zeros(d).double()) for mine in found]) for d in sorted(widths)}
    return VectorGuess(torch.tensor([one.client for one in latest]), directions)
