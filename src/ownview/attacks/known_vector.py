"""The sign attack of an attacker who knows the user's own vector: an upper bound for attacks by direction.

No server receives that vector. It bounds what a better guess of the direction could gain, which matters under noise.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ownview.attacks.evidence import Evidence
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES, WHO = "sign, vector told", "one upload and the user's own vector", "a reader who knows both"


def guess(view: ServerView, private: Mapping[str, Tensor]) -> ItemGuess | Inapplicable:
    """Claims the rows that moved towards the vector; the further, the likelier.

    Args:
        view: of the server.
        private: by name [n, ...], what clients hold of their own.
    """
    found = [(one, along) for one in view.first() if (along := _along(one, private)) is not None]
    if not found:
        return Inapplicable("clients hold no vector as wide as the rows they send")
    scores = torch.stack([along for _, along in found])
    return ItemGuess(torch.tensor([one.client for one, _ in found]), scores > 0, scores)


def _along(one: Evidence, private: Mapping[str, Tensor]) -> Tensor | None:
    """[m] how far rows moved along the first private vector of a table's width; None where there is none."""
    for change in one.changes.values():
        for value in private.values():
            mine = value[one.client].reshape(-1).double().cpu()
            if len(mine) == change.shape[1] > 1:
                return change.double() @ mine * one.touched
    return None
