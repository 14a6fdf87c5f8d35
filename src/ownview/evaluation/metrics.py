"""Metrics of one held-out item a user, computed from where it stands among its candidates.

A `Standing` keeps integers per user, so every metric is exact under either tie rule, and intervals, groups and
paired tests can be made later without ranking again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray, IntArray

HEADLINE = ("HR@10", "NDCG@10")
"""What tables show, intervals are made for, and papers report."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Where the held-out item of each ranked user stands.

    Args:
        users: [k] positions of the ranked users.
        better: [k] candidates with a higher score.
        tied: [k] other candidates with the same score.
        candidates: [k] candidates in all, the held-out item included.
        ties: "expected": average over all orders of the tied block; "last": the held-out item comes last in it.
    """

    users: IntArray
    better: IntArray
    tied: IntArray
    candidates: IntArray
    ties: str

    @property
    def first(self) -> IntArray:
        """[k] best rank the tie rule allows, from 1."""
        return self.better + 1 + (self.tied if self.ties == "last" else 0)

    @property
    def last(self) -> IntArray:
        """[k] worst rank the tie rule allows, from 1."""
        return self.better + 1 + self.tied

    @property
    def tied_share(self) -> float:
        """Share of users whose held-out item is tied with another candidate."""
        return float((self.tied > 0).mean()) if len(self.tied) else 0.0


def hit_rate(standing: Standing, k: int) -> FloatArray:
    """[users] HR@K: 1 if the held-out item is among the first K, else 0; the chance of it under expected ties."""
    return _mean_over_block(standing, _prefix_sums(np.ones(k), standing))


def ndcg(standing: Standing, k: int) -> FloatArray:
    """[users] NDCG@K: 1 / log2(1 + rank) if rank <= K, else 0. One relevant item, so the ideal DCG is 1."""
    return _mean_over_block(standing, _prefix_sums(1 / np.log2(np.arange(2, k + 2)), standing))


def reciprocal_rank(standing: Standing) -> FloatArray:
    """[users] 1 / rank over all candidates; its mean is MRR."""
    longest = int(standing.last.max()) if len(standing.last) else 1
    return _mean_over_block(standing, _prefix_sums(1 / np.arange(1, longest + 1), standing))


def area_under_curve(standing: Standing) -> FloatArray:
    """[users] AUC: share of the other candidates that the held-out item beats.

    A tie counts one half under expected ties and nothing under "last". With no other candidate: 0.5.
    """
    others = standing.candidates - 1
    worse = others - standing.better - standing.tied
    half = 0.5 if standing.ties == "expected" else 0.0
    return np.where(others > 0, (worse + half * standing.tied) / np.maximum(others, 1), 0.5)


def per_user(standing: Standing, cutoffs: tuple[int, ...]) -> dict[str, FloatArray]:
    """Every metric by name, one value a user."""
    values: dict[str, FloatArray] = {}
    for k in cutoffs:
        values[f"HR@{k}"] = hit_rate(standing, k)
        values[f"NDCG@{k}"] = ndcg(standing, k)
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
