"""How good the recommendations at a place are: sums over its users leave, and nothing about any one of them alone."""

from __future__ import annotations

import numpy as np
import torch

from ownview.deploy.places.holdings import Holdings
from ownview.evaluation.metrics import HEADLINE, Standing, per_user
from ownview.round.residents import Residents

USERS = "users"
_CUTOFFS = (10,)


def metric_sums(residents: Residents, holdings: Holdings, download: bytes) -> dict[str, float]:
    """Sums of metrics over the users who hold an item out, and how many they are.

    The held-out item stands among all items that the user does not train on; of tied items, at an average place.

    Args:
        residents: of the users.
        holdings: theirs.
        download: that they predict with.
    """
    asked = torch.nonzero(holdings.held_out >= 0)[:, 0]
    if not len(asked):
        return {USERS: 0, **dict.fromkeys(HEADLINE, 0.0)}
    scores = residents.scores(download, asked).clone()
    items, real = holdings.train.padded(asked)
    row = torch.arange(len(asked))[:, None].expand_as(items)
    scores[row[real], items[real]] = -torch.inf
    mine = scores.gather(1, holdings.held_out[asked, None])
    better, tied = ((scores > mine).sum(1), (scores == mine).sum(1) - 1)
    candidates = torch.isfinite(scores).sum(1)
    standing = Standing(asked.numpy(), better.numpy(), tied.numpy(), candidates.numpy(), "expected")
    found = per_user(standing, _CUTOFFS)
    return {USERS: len(asked), **{name: float(np.sum(found[name])) for name in HEADLINE}}


def means(sums: list[dict[str, float]]) -> dict[str, float]:
    """Means over the users of several places; empty where there are none."""
    users = sum(one[USERS] for one in sums)
    return {name: sum(one[name] for one in sums) / users for name in HEADLINE} if users else {}
