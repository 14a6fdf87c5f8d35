"""Diversity and popularity of a list, by choosing its items one after the other from the best candidates.

Each next item has the greatest

    (1 - d - c) s_i  -  d max_j likeness(i, j)  -  c KL(p || q_i)

with s_i the score brought to 0..1 over the candidates and j the items chosen so far. The second part is maximal
marginal relevance (Carbonell and Goldstein, 1998). The third calibrates (Steck, 2018): p is how a person's history
spreads over the most, less and least popular items, q_i how the list would with item i, mixed with a hundredth of p so
that the divergence stays finite. d = c = 0 leaves the order of scores. docs/serve.md has what both cost in hits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MIXED = 0.01


def candidates(k: int) -> int:
    """How many of the best items a list of k is chosen from."""
    return max(100, 5 * k)


def reranked(
    scores: Floats,
    likeness: Floats,
    diversity: float,
    group: Ints | None,
    taste: Floats | None,
    popularity: float,
    k: int,
) -> list[int]:
    """Places among the candidates, in the order of the new list.

    Args:
        scores: [c] falling.
        likeness: [c, c] from 0 to 1.
        diversity: d.
        group: [c] of popularity; None where `popularity` is 0.
        taste: [g] p, which sums to 1; None likewise.
        popularity: c.
        k: items of the list.
    """
    span = scores[0] - scores[-1] if len(scores) else 0.0
    value = (1 - diversity - popularity) * ((scores - scores[-1]) / span if span > 0 else np.ones_like(scores))
    nearest, chosen = np.zeros(len(scores)), list[int]()
    taken = np.zeros(0 if taste is None else len(taste))
    left = np.ones(len(scores), dtype=bool)
    for _ in range(min(k, len(scores))):
        gain = value - diversity * nearest
        if group is not None and taste is not None:
            gain -= popularity * _divergences(taste, taken)[group]
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, likeness[best])
        if group is not None:
            taken[group[best]] += 1
    return chosen


def spread(groups: Sequence[int], number: int) -> Floats:
    """[g] shares of the groups; all the same for none."""
    counts = np.bincount(np.asarray(groups, dtype=np.int64), minlength=number).astype(float)
    return counts / counts.sum() if len(groups) else np.full(number, 1.0 / number)


def _divergences(taste: Floats, taken: Floats) -> Floats:
    """[g] KL(p || q) of the list with one more item of each group."""
    lists = (taken + np.eye(len(taken))) / (taken.sum() + 1)
    mixed = (1 - _MIXED) * lists + _MIXED * taste
    some = taste > 0
    found: Floats = (taste[some] * np.log(taste[some] / mixed[:, some])).sum(1)
    return found
