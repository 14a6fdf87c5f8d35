"""Rows touched in round after round: negatives are drawn anew, a client's own items come again every time."""

from __future__ import annotations

import torch

from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES = "rows touched over rounds", "all uploads of a client"


def guess(view: ServerView) -> ItemGuess | Inapplicable:
    """Claims the items that every upload of the client was about; an item is the likelier the more of them were."""
    found = {client: each for client, each in view.by_client().items() if len(each) > 1}
    if not found:
        return Inapplicable("no client sent more than one message about items; watch more rounds")
    if all(bool(one.touched.all()) for each in found.values() for one in each):
        return Inapplicable("every row of every upload moved, so that none stands out")
    shares = torch.stack([torch.stack([one.touched for one in each]).double().mean(0) for each in found.values()])
    return ItemGuess(torch.tensor(list(found)), shares == 1, shares)
