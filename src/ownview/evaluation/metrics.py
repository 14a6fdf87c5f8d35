"""Metrics of what is right for a user, computed from where it stands among its candidates.

A `Standing` keeps integers for every right answer, so every metric is exact under either tie rule, and intervals,
groups and paired tests can be made later without ranking again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray, IntArray

HEADLINE = ("HR@10", "NDCG@10")
"""What tables show, intervals are made for, and papers report."""

BY_CUTOFF = ("HR", "NDCG", "recall")
"""Names of metrics of the first K; recall stands beside HR where there are several right answers."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Ranks of each asked user's right answers.

    Args:
        users: [k] positions of the users.
        better: [p] for every right answer, user after user: candidates with a higher score, other right answers among
            them.
        tied: [p] other candidates with the same score, likewise.
        candidates: [k] candidates in all, right answers included.
        ties: "expected": average over all orders of the tied block; "last": right answers come last in it.
        answers: [k] how many right answers each user has, at least 1; None for one each, p = k then.
    """

    users: IntArray
    better: IntArray
    tied: IntArray
    candidates: IntArray
    ties: str
    answers: IntArray | None = None

    @property
    def single(self) -> bool:
        """Whether everybody has one right answer."""
        return self.answers is None

    @cached_property
    def owner(self) -> IntArray:
        """[p] the place in `users` of every right answer's user."""
        return (
            np.arange(len(self.users)) if self.answers is None else np.repeat(np.arange(len(self.users)), self.answers)
        )

    @cached_property
    def together(self) -> IntArray:
        """[p] right answers of the same user in the same tied block, itself included."""
        if self.single or not len(self.better):
            return np.ones(len(self.better), dtype=np.int64)
        block = self.owner * (int(self.better.max()) + 1) + self.better  # equal scores have equally many above them
        _, place, count = np.unique(block, return_inverse=True, return_counts=True)
        return np.asarray(count[place.reshape(-1)])

    @property
    def first(self) -> IntArray:
        """[p] best rank the tie rule allows, from 1."""
        return self.better + 1 + (self.tied - (self.together - 1) if self.ties == "last" else 0)

    @property
    def last(self) -> IntArray:
        """[p] worst rank the tie rule allows, from 1."""
        return self.better + 1 + self.tied

    @property
    def tied_share(self) -> float:
        """Share of right answers that are tied with another candidate."""
        return float((self.tied > 0).mean()) if len(self.tied) else 0.0

    def by_user(self, values: FloatArray) -> FloatArray:
        """[k] sums of [p]."""
        if self.single:
            return values
        return np.asarray(np.bincount(self.owner, weights=values, minlength=len(self.users)), dtype=np.float64)

    @cached_property
    def leading(self) -> IntArray:
        """[k] the place in [p] of one of each user's best right answers."""
        if self.answers is None:
            return np.arange(len(self.users))
        order = np.lexsort((self.better, self.owner))
        return np.asarray(order[np.concatenate([[0], np.cumsum(self.answers)[:-1]]).astype(np.int64)])


def hit_rate(standing: Standing, k: int) -> FloatArray:
    """[users] HR@K: 1 if a right answer is among the first K, else 0; the chance of it under expected ties.

    Of the first tied block that holds right answers, r of t, s = K - (candidates above it) are taken: the chance that
    none of the r is among them is C(t - r, s) / C(t, s).
    """
    if standing.single:
        return _mean_over_block(standing, _prefix_sums(np.ones(k), standing))
    best = standing.leading
    above, size, right = standing.better[best], standing.tied[best] + 1, standing.together[best]
    if standing.ties == "last":
        return np.asarray(above + size - right + 1 <= k, dtype=np.float64)
    taken = np.clip(k - above, 0, size)
    # C(t - r, s) / C(t, s) is the product over j < s of (t - r - j) / (t - j); s is at most K.
    missed = np.ones(len(best))
    for j in range(k):
        missed *= np.where(j < taken, np.maximum(size - right - j, 0) / np.maximum(size - j, 1), 1.0)
    return 1 - missed


def ndcg(standing: Standing, k: int) -> FloatArray:
    """[users] NDCG@K: sum over right answers of 1 / log2(1 + rank) where rank <= K, over its largest possible value.

    With R right answers that is the sum of 1 / log2(1 + rank) over the ranks 1 to min(K, R); with one it is 1.
    """
    gain = 1 / np.log2(np.arange(2, k + 2))
    reached = standing.by_user(_mean_over_block(standing, _prefix_sums(gain, standing)))
    if standing.answers is None:
        return reached
    return np.asarray(reached / np.cumsum(gain)[np.minimum(standing.answers, k) - 1])


def chance_of_hit(candidates: IntArray, right: IntArray, k: int) -> FloatArray:
    """[users] HR@K of a random order: 1 - C(c - r, K) / C(c, K) for r right answers among c candidates."""
    missed = np.ones(len(candidates))
    for j in range(k):
        missed *= np.where(candidates > j, np.maximum(candidates - right - j, 0) / np.maximum(candidates - j, 1), 1.0)
    return 1 - missed


def recall(standing: Standing, k: int) -> FloatArray:
    """[users] recall@K: the share of a user's right answers among the first K."""
    found = standing.by_user(_mean_over_block(standing, _prefix_sums(np.ones(k), standing)))
    return found if standing.answers is None else found / standing.answers


def reciprocal_rank(standing: Standing) -> FloatArray:
    """[users] 1 / rank of the best right answer over all candidates; its mean is MRR.

    Where r of t tied candidates are right, the first of them stands at place j with probability C(t - j, r - 1) /
    C(t, r).
    """
    longest = int(standing.last.max()) if len(standing.last) else 1
    reached = _mean_over_block(standing, _prefix_sums(1 / np.arange(1, longest + 1), standing))
    if standing.single:
        return reached
    best = standing.leading
    values = reached[best]
    if standing.ties == "last":
        return np.asarray(1 / (standing.last[best] - standing.together[best] + 1))
    for place in np.flatnonzero(standing.together[best] > 1):
        one = best[place]
        chance = _first_of(int(standing.together[one]), int(standing.tied[one]) + 1)
        values[place] = (chance / (standing.better[one] + np.arange(1, len(chance) + 1))).sum()
    return values


def area_under_curve(standing: Standing) -> FloatArray:
    """[users] AUC: share of the candidates that are not right which a right answer beats, the mean over right answers.

    A tie counts one half under expected ties and nothing under "last". With nothing else to beat: 0.5.
    """
    answers = np.ones(len(standing.users), dtype=np.int64) if standing.answers is None else standing.answers
    others = (standing.candidates - answers)[standing.owner]
    better, tied = standing.better - _right_above(standing), standing.tied - (standing.together - 1)
    half = 0.5 if standing.ties == "expected" else 0.0
    each = np.where(others > 0, (others - better - tied + half * tied) / np.maximum(others, 1), 0.5)
    return standing.by_user(each) / answers


def per_user(standing: Standing, cutoffs: tuple[int, ...]) -> dict[str, FloatArray]:
    """Every metric by name, one value a user."""
    values: dict[str, FloatArray] = {}
    for k in cutoffs:
        values[f"HR@{k}"] = hit_rate(standing, k)
        values[f"NDCG@{k}"] = ndcg(standing, k)
        if not standing.single:
            values[f"recall@{k}"] = recall(standing, k)
    values["MRR"] = reciprocal_rank(standing)
    values["AUC"] = area_under_curve(standing)
    return values


def means(standing: Standing, cutoffs: tuple[int, ...]) -> dict[str, float]:
    """Every metric's mean over users by name."""
    return {name: float(values.mean()) for name, values in per_user(standing, cutoffs).items()}


def coverage(recommended: npt.NDArray[np.int64], num_items: int) -> float:
    """Share of all items that stand in at least one user's list; lists [users, K], -1 for empty places."""
    return len(np.unique(recommended[recommended >= 0])) / num_items


def gini(recommended: npt.NDArray[np.int64], num_items: int) -> float:
    """Gini index of how often items are recommended: 0 all equally often, towards 1 a few take all.

    With counts c_(1) <= ... <= c_(m): sum_i (2 i - m - 1) c_(i) / (m sum_i c_(i)). 0 where nothing is recommended.
    """
    counts = np.sort(np.bincount(recommended[recommended >= 0].reshape(-1), minlength=num_items))
    total = counts.sum()
    if not total:
        return 0.0
    weights = 2 * np.arange(1, num_items + 1) - num_items - 1
    return float((weights * counts).sum() / (num_items * total))


def _first_of(right: int, size: int) -> FloatArray:
    """[t - r + 1] the chance of each place, from 1, to hold the first of r right ones among t in random order."""
    chance = np.empty(size - right + 1)
    missed = 1.0
    for j in range(len(chance)):
        chance[j] = missed * right / (size - j)
        missed *= (size - right - j) / (size - j)
    return chance


def _right_above(standing: Standing) -> IntArray:
    """[p] right answers of the same user with a higher score."""
    if standing.single:
        return np.zeros(len(standing.better), dtype=np.int64)
    order = np.lexsort((standing.better, standing.owner))
    owner, better = standing.owner[order], standing.better[order]
    begins = np.searchsorted(owner, owner)  # where the user's answers begin
    same = owner * (int(better.max()) + 1) + better
    above = np.empty(len(order), dtype=np.int64)
    above[order] = np.searchsorted(same, same) - begins
    return above


def _prefix_sums(gain: FloatArray, standing: Standing) -> FloatArray:
    """Cumulative gain by rank, from rank 0 (nothing) to the longest list."""
    longest = int(standing.last.max()) if len(standing.last) else 1
    padded = np.zeros(max(longest, len(gain)))
    padded[: len(gain)] = gain
    return np.concatenate([[0.0], np.cumsum(padded)])


def _mean_over_block(standing: Standing, prefix: FloatArray) -> FloatArray:
    """Mean gain over the ranks first..last that the tie rule allows."""
    ranks = standing.last - standing.first + 1
    return np.asarray((prefix[standing.last] - prefix[standing.first - 1]) / ranks)
