"""Sanity of a protocol's ranking: answers that are known without training must come out.

Where one of these fires nothing measured under the protocol on that data can be believed: not the data is strange, the
measuring is broken.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ownview.base.randomness import bits, derive, unit
from ownview.data.interactions import FloatArray, IntArray
from ownview.evaluation.findings import Finding
from ownview.evaluation.metrics import area_under_curve, chance_of_hit, hit_rate, ndcg, per_user
from ownview.evaluation.ranking import Ranker

_K = 10
_LIMIT = 4.0
"""Standard errors a mean may lie from chance. By chance alone one audit in eight thousand is beyond for one metric."""

_EXACT = 1e-9


def sanity_probes(ranker: Ranker, seed: int) -> list[Finding]:
    """Random scores at chance, a constant model at its tie rule's value, the order of users without effect."""
    return [random_probe(ranker, seed), constant_probe(ranker), shuffle_probe(ranker, seed)]


def random_probe(ranker: Ranker, seed: int) -> Finding:
    """Random scores must be at chance: the odds of a random order for HR@10, and 1/2 for AUC.

    It fires where HR@10 or AUC lies more than four standard errors away. The errors are known exactly: a hit has
    variance p (1 - p), and AUC of r right ones among c has (c + 1) / (12 r (c - r)). Right answers that are unknown
    items stand last: they are never hit and beat no candidate.
    """
    standing = ranker.rank(_RandomScores(derive(seed, "sanity"), ranker.num_items))
    right, answers = ranker.met, ranker.answers
    total = standing.candidates - (answers - right)
    chance = chance_of_hit(total, right, _K)
    others, share = total - right, right / answers
    spread = np.where((others > 0) & (right > 0), (total + 1) / (12 * np.maximum(right * others, 1)), 0.0)
    hits, areas = hit_rate(standing, _K), area_under_curve(standing)
    off_hits = standard_errors(hits - chance, chance * (1 - chance))
    off_areas = standard_errors(areas - 0.5 * share, share**2 * spread)
    fires = max(abs(off_hits), abs(off_areas)) > _LIMIT
    reached = (
        f"random scores reach HR@{_K} {hits.mean():.4f} where chance is {chance.mean():.4f}, AUC {areas.mean():.3f}"
    )
    sentence = f"{reached}: the ranking itself is not to be trusted" if fires else f"{reached}, as they must"
    values: dict[str, float | str] = {
        f"HR@{_K}": float(hits.mean()),
        "chance": float(chance.mean()),
        "AUC": float(areas.mean()),
        "standard_errors_HR": off_hits,
        "standard_errors_AUC": off_areas,
    }
    return Finding("sanity-random", fires, sentence, values)


def constant_probe(ranker: Ranker) -> Finding:
    """A model that scores everything alike must be at its tie rule's value.

    Expected ties, one right answer among c: HR@10 = min(10 / c, 1), NDCG@10 = sum over r <= min(10, c) of
    1 / log2(1 + r) / c; of several each has that sum, and HR@10 is that of a random order. Ties lost: rank c, so both
    are 0 unless there are 10 candidates or fewer.
    """
    standing = ranker.rank(_ConstantScores(ranker.num_items))
    wanted = _tied(standing.candidates - (ranker.answers - ranker.met), ranker.met, ranker.answers, ranker.ties)
    reached = np.stack([hit_rate(standing, _K), ndcg(standing, _K)], axis=1)
    worst = float(np.abs(reached - wanted).max())
    fires = worst > _EXACT
    must = f"HR@{_K} {wanted[:, 0].mean():.4f} by its tie rule ({ranker.ties})"
    sentence = (
        f"a constant model has HR@{_K} {reached[:, 0].mean():.4f} instead of {must}: ties are not broken as promised"
        if fires
        else f"a constant model has {must}, as it must"
    )
    values: dict[str, float | str] = {
        f"HR@{_K}": float(reached[:, 0].mean()),
        f"NDCG@{_K}": float(reached[:, 1].mean()),
        "expected_HR": float(wanted[:, 0].mean()),
        "expected_NDCG": float(wanted[:, 1].mean()),
        "largest_difference": worst,
        "ties": ranker.ties,
    }
    return Finding("sanity-constant", fires, sentence, values)


def shuffle_probe(ranker: Ranker, seed: int) -> Finding:
    """Asking the users in another order, and in blocks of another size, must not change any value."""
    scorer = _RandomScores(derive(seed, "sanity"), ranker.num_items)
    drawn = torch.from_numpy(np.random.default_rng(derive(seed, "sanity:order")).permutation(len(ranker.users)))
    order = drawn.to(ranker.device)
    other = replace(ranker.of(order), block=max(1, ranker.block // 2 + 1))
    before, after = (per_user(one.rank(scorer), (_K,)) for one in (ranker, other))
    worst = max(float(np.abs(before[name][drawn.numpy()] - after[name]).max()) for name in before)
    fires = worst > _EXACT
    sentence = (
        f"asking the users in another order changes a user's value by {worst:.3g}: results hang on that order"
        if fires
        else "asking the users in another order changes no user's value, as it must be"
    )
    return Finding("sanity-shuffle", fires, sentence, {"largest_difference": worst})


def standard_errors(off: FloatArray, variance: FloatArray) -> float:
    """How many standard errors of their mean the deviations [users] lie from nought; 0 where nothing can vary."""
    error = math.sqrt(float(variance.sum()))
    total = float(off.sum())
    if error == 0:
        return 0.0 if abs(total) < _EXACT else math.copysign(1e9, total)
    return total / error


def _tied(total: IntArray, right: IntArray, answers: IntArray, ties: str) -> FloatArray:
    """[k, 2] HR@10 and NDCG@10 where all candidates are tied.

    Args:
        total: [k] candidates with training interactions.
        right: [k] right answers among them.
        answers: [k] right answers, met or not.
        ties: the tie rule.
    """
    gain = 1 / np.log2(np.arange(2, _K + 2))
    ideal = np.cumsum(gain)[np.minimum(answers, _K) - 1]
    if ties == "last":  # the ranks total - right + 1 to total
        inside = np.stack([(total - right < rank) & (rank <= total) for rank in range(1, _K + 1)], axis=1)
        return np.stack([inside.any(1).astype(float), (inside * gain).sum(1) / ideal], axis=1)
    reached = np.cumsum(gain)[np.minimum(total, _K) - 1] / total
    return np.stack([chance_of_hit(total, right, _K), reached * right / ideal], axis=1)


class _RandomScores:
    """A score for every user and item, by hash: independent of the order of calls."""

    def __init__(self, key: int, num_items: int) -> None:
        self.key, self.num_items = key, num_items

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] uniform in [0, 1)."""
        asked = torch.arange(self.num_items, device=users.device)[None, :] if items is None else items
        return unit(bits(self.key, users[:, None], asked))


class _ConstantScores:
    def __init__(self, num_items: int) -> None:
        self.num_items = num_items

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] noughts."""
        return torch.zeros(len(users), self.num_items if items is None else items.shape[1], device=users.device)
