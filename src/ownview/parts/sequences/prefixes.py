"""Beginnings of a history, each a sequence of its own that teaches what came after its last item.

Tan, Xu and Liu, "Improved Recurrent Neural Networks for Session-based Recommendations", DLRS 2016; so do RecBole and
BSARec. In one pass over a history an item's place is counted from the end of the history; here it is counted from the
target, as it is when the model is asked.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from ownview.base.randomness import bits, derive
from ownview.parts.sequences.places import reach
from ownview.parts.sequences.transformer import Transformer, every_score
from ownview.seam.training import Params

_DRAWN, _KEYED = (derive(0, f"prefixes:{what}") for what in ("drawn", "keyed"))
_NEVER = 2**63 - 1
_STEP = 2**31
"""More places than a history has: separates the draws of a client's steps."""


class Prefixes(NamedTuple):
    """P beginnings of a history, or of several histories.

    items:   [P, W] the last W items before the target, real ones first
    there:   [P] how many are real
    targets: [P, R] the item that came next, and with a horizon those after it
    weights: [P, R] of each, summing to 1
    real:    [P] 1 for a beginning, 0 for padding
    chances: [P] numbers that key dropout, another for every beginning
    """

    items: Tensor
    there: Tensor
    targets: Tensor
    weights: Tensor
    real: Tensor
    chances: Tensor


def prefixes(
    network: Transformer, rows: Tensor, mask: Tensor, chance: Tensor, most: int = 0, step: int = 0
) -> Prefixes:
    """The beginnings of one history, which end before its second, third, ... item.

    Args:
        network: how far it looks back, and its targets ahead.
        rows: [L] items, oldest first, padding behind the last.
        mask: [L] 1 for an item, 0 for padding.
        chance: of the client in this round.
        most: so many are drawn with equal chances, none twice; all where there are not more, or where it is 0.
        step: index that separates draws of the same chance.

    Returns:
        P = min(L - 1, most) beginnings; one of padding where L is 1.
    """
    length, there = network.length, mask.sum().long()
    target = torch.arange(1, max(2, len(rows)), device=rows.device)
    last = len(target)  # of all of them: what is drawn looks no less far ahead
    if 0 < most < len(target):
        lots = bits(_DRAWN, chance, step * _STEP + target)
        target = torch.where(target < there, lots, _NEVER).argsort()[:most] + 1
    real, width = target < there, max(1, min(length, len(rows) - 1))
    places = (target - length).clamp(min=0)[:, None] + torch.arange(width, device=rows.device)
    horizon = network.horizon
    later = torch.arange(min(reach(horizon), last) if horizon > 0 else 1, device=rows.device)
    ahead = target[:, None] + later
    weights = (torch.exp(-later.to(mask.dtype) / horizon) if horizon > 0 else torch.ones_like(mask[:1])) * (
        ahead < there
    )
    return Prefixes(
        items=rows[places.clamp(max=len(rows) - 1)],
        there=torch.where(real, target.clamp(max=length), 0),
        targets=rows[ahead.clamp(max=len(rows) - 1)],
        weights=weights / weights.sum(-1, keepdim=True).clamp(min=1e-30),
        real=real.to(mask.dtype),
        chances=bits(_KEYED, chance, step * _STEP + target),
    )


def states(network: Transformer, p: Params, taught: Prefixes) -> Tensor:
    """[P, d] what the network makes of each beginning."""

    def last(items: Tensor, there: Tensor, chance: Tensor) -> Tensor:
        return network.at_last(p, items, there, chance)

    found: Tensor = torch.vmap(last)(taught.items, taught.there, taught.chances)
    return found


def flat(taught: Prefixes) -> Prefixes:
    """Of several histories, [B, P, ...], the beginnings that are none of padding, [S, ...], short ones first."""
    order = torch.where(taught.real > 0, taught.there, _NEVER).flatten().argsort(stable=True)
    order = order[: int(taught.real.sum())]
    return Prefixes(*(one.flatten(0, 1)[order] for one in taught))


def some(taught: Prefixes, these: slice) -> Prefixes:
    """Some of them, no wider than the longest; there must be one."""
    part = Prefixes(*(one[these] for one in taught))
    return part._replace(items=part.items[:, : max(1, int(part.there.max()))])


def loss(
    network: Transformer, p: Params, taught: Prefixes, chance: Tensor, negatives: int = 0, step: int = 0
) -> Tensor:
    """[] the sum over one history's beginnings of -log softmax(scores)[target], over all items or some drawn ones."""
    table = network.table(p)
    hidden, wanted = answered(network, p, table, taught)
    every = every_score(table, hidden, wanted, taught.targets[:, 0], chance, negatives, step)
    return (taught.real * (every - wanted)).sum()


def answered(network: Transformer, p: Params, table: Tensor, taught: Prefixes) -> tuple[Tensor, Tensor]:
    """[P, d] the state after each beginning, and [P] the score of what came next, or the mean of what came."""
    hidden = states(network, p, taught)
    targets = (taught.weights[..., None] * embedding(taught.targets, table)).sum(1)
    return hidden, network.wanted(table, hidden, targets)


def working(network: Transformer, candidates: int, length: int, most: int) -> int:
    """Numbers held by the loss and gradient of a client whose history has this length."""
    count = max(1, length - 1)
    count = min(count, most) if most else count
    ahead = min(reach(network.horizon), length) * network.size if network.horizon > 0 else 0
    return count * (3 * candidates + 4 * ahead + network.inside(min(network.length, max(1, length - 1))))
