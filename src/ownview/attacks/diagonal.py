"""The diagonal of a summand: a matrix of pairs counts an item with itself, so its diagonal lists the client's items."""

from __future__ import annotations

import torch

from ownview.attacks.evidence import changed
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.view import ServerView

NAME, SEES = "diagonal", "one upload"


def guess(view: ServerView) -> ItemGuess | Inapplicable:
    """Claims items whose count is not 0; under noise, those above half of the largest. The larger, the likelier."""
    found = [one for one in view.first() if one.counts]
    if not found:
        return Inapplicable("clients send no summand with one number an item, or of items by items")
    scores, claimed = [], []
    for one in found:
        each = [count.double() / count.double().abs().max().clamp(min=1e-30) for count in one.counts.values()]
        likely = torch.stack(each).mean(0)
        scores.append(likely)
        noisy = view.noisy and one.filled
        claimed.append(likely > 0.5 * likely.max() if noisy else torch.stack([changed(c) for c in each]).any(0))
    return ItemGuess(torch.tensor([one.client for one in found]), torch.stack(claimed), torch.stack(scores))
