"""An influence certificate for EASE^R of summed pairs: how far one more history can move other people's lists.

A person scores items by s_j = x_j - q_j / P_jj with q = P x and P = (G + lambda I)^-1 (`methods.fedease`). One more
history of items S adds K to G, a kernel on S with a diagonal of 1, so that by Woodbury

    q'_j = q_j - P_jS A q_S,   P'_jj = P_jj - P_jS A P_Sj,   A = (K^-1 + P_SS)^-1,   0 <= A <= K.

So no entry of A exceeds 1 in size. With R_j the sum of the k largest |P_j.| and sigma the sum of |q_b| over b in S,

    |q'_j - q_j| <= R_j sigma,   0 <= P_jj - P'_jj <= R_j^2

for every history of at most k items, in any order. From these follows the least sigma, g, with which an item can come
into a person's list. One history serves everybody at once, and the indicator of sigma >= g is at most sigma / g, a sum
over the items of S: the number of people it reaches is at most the sum of the k largest of sum_u min(1, |q_ub| / g_u).

An item j is brought into lists by a history that has it (then k - 1 others are left) or by one that has not (then P_j.
is small): the worse of both counts. All of it are bounds, in float64; what a history reaches is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.attacks.view import Scene
from ownview.parts.pairs.positive_definite import ease_inverse
from ownview.round.scorers import asked

_TOGETHER = 256
"""People who are asked at once."""

_LEAST = 1e-12
"""What is nearer to a list than this counts as in it already: rounding of scores."""


@dataclass(frozen=True)
class Certificate:
    """What no single history of at most `items` items exceeds.

    Args:
        items: k.
        people: whose lists they are.
        changed: share of the lists in which it exchanges an item.
        entered: share of the lists into which it brings one item, for any item.
    """

    items: int
    people: int
    changed: float
    entered: float

    def __str__(self) -> str:
        """In words."""
        return (
            f"no single history of at most {self.items} items can bring any one item into more than {self.entered:.1%} "
            f"of {self.people} lists, nor change more than {self.changed:.1%} of them"
        )


def certificate(gram: Tensor, regularization: float, people: Tensor, never: Tensor, items: int) -> Certificate:
    """Of a fitted model.

    Args:
        gram: [m, m] G.
        regularization: lambda.
        people: [n, m] x of everybody whose list of ten is looked at.
        never: [n, m] items that are no candidates.
        items: k.
    """
    inverse = ease_inverse(gram.double(), regularization)
    diagonal, most = inverse.diagonal().clone(), min(items, len(gram))
    apart = inverse.abs()
    apart.fill_diagonal_(0.0)
    others = apart.topk(most, dim=1).values
    near, far = diagonal + others[:, : most - 1].sum(1), others.sum(1)
    if bool((near.square() >= diagonal).any()):
        return Certificate(items, len(people), 1.0, 1.0)
    x, q = people.double(), people.double() @ inverse
    list_like = _Lists(x, q, diagonal, near, never)
    with_it, without = list_like.needed(near), list_like.needed(far)
    seen = q.abs()
    entered = max(_most_reached(with_it - seen, seen, most - 1), _most_reached(without, seen, most))
    changed = _reached(torch.minimum(with_it, without).min(1).values, seen, most)
    count = len(people)
    return Certificate(items, count, min(1.0, changed / count), min(1.0, entered / count))


@dataclass(frozen=True)
class _Lists:
    """Everybody's lists, and how far items are from them.

    Args:
        x: [n, m].
        q: [n, m].
        diagonal: [m] of P.
        near: [m] R.
        never: [n, m] items that are no candidates.
    """

    x: Tensor
    q: Tensor
    diagonal: Tensor
    near: Tensor
    never: Tensor
    length: int = 10

    def needed(self, reach: Tensor) -> Tensor:
        """[n, m] the least sigma with which an item of reach R_j [m] comes into a list; infinite for those in it."""
        size, square = min(self.length, len(self.diagonal)), self.near.square()
        now = (self.x - self.q / self.diagonal).masked_fill(self.never, -math.inf)
        low = (self.x + _divided(-self.q, self.diagonal, self.diagonal - square)).masked_fill(self.never, -math.inf)
        best = low.topk(size, dim=1)
        slopes = self.near / (self.diagonal - square)
        down = slopes[best.indices].max(1, keepdim=True).values
        high = self.x + _divided(-self.q, self.diagonal - reach.square(), self.diagonal)
        up = reach / (self.diagonal - reach.square())
        needed = (best.values[:, -1:] - high) / (down + up)
        inside = torch.zeros_like(self.never).scatter_(1, now.topk(size, dim=1).indices, True)
        return needed.clamp(min=0.0).masked_fill(inside | self.never, math.inf)


def _divided(values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Values over one divisor where they are above 0, over another where they are below."""
    return torch.where(values > 0, values / positive, values / negative)


def _most_reached(needed: Tensor, seen: Tensor, count: int) -> float:
    """People into whose lists any item comes at most, by a history of so many items besides.

    Args:
        needed: [n, m] of sigma, by person and item.
        seen: [n, m] |q|.
        count: of items.
    """
    within = (needed <= seen.topk(count, dim=1).values.sum(1, keepdim=True) + _LEAST).sum(0)
    most = 0.0
    for item in within.argsort(descending=True).tolist():
        if int(within[item]) <= most:
            break
        most = max(most, _reached(needed[:, item], seen, count))
    return most


def _reached(needed: Tensor, seen: Tensor, count: int) -> float:
    """People that a history of so many items reaches at most, who need [n] of sigma."""
    within = needed <= seen.topk(count, dim=1).values.sum(1) + _LEAST
    needed, seen = needed[within], seen[within]
    free = needed <= _LEAST
    weights = (seen[~free] / needed[~free, None]).clamp(max=1.0).sum(0)
    return min(float(within.sum()), float(free.sum()) + float(weights.topk(count).values.sum()))


def certified(scene: Scene, regularization: float, items: int = 3) -> Certificate:
    """Of EASE^R of summed pairs, fitted on a scene: of the lists of everybody whom the test asks.

    Args:
        scene: of `methods.fedease`, without a budget.
        regularization: lambda.
        items: k.
    """
    federation, question = scene.federation(), scene.split.test
    federation.round(1)
    gram, users = federation.server.held["gram"].cpu(), torch.from_numpy(question.users)
    # Scored by the identity in the place of B, a client shows its x.
    federation.server.shared["weights"] = torch.eye(len(gram), dtype=gram.dtype, device=federation.machine.device)
    scorer = asked(federation, question)
    people = torch.cat([scorer.scores(some.to(gram.device), None).cpu() for some in torch.split(users, _TOGETHER)])
    hidden, mask = question.hidden.padded(users)
    never = torch.zeros(len(users), len(gram)).scatter_add_(1, hidden, mask.float()) > 0
    return certificate(gram, regularization, people, never, items)
