"""Metrics against brute force and against an independent library."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from irspack.evaluation import Evaluator
from scipy.sparse import csr_matrix
from torch import Tensor

from ownview.data import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation.metrics import (
    Standing,
    area_under_curve,
    coverage,
    gini,
    hit_rate,
    means,
    ndcg,
    per_user,
    reciprocal_rank,
)
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Ranker, rankers

CPU = torch.device("cpu")
CUTOFFS = (1, 5, 10, 20)


def standing(better: int, tied: int, worse: int, ties: str = "expected") -> Standing:
    """One user whose held-out item stands among so many others."""
    candidates = better + tied + worse + 1
    return Standing(np.array([0]), np.array([better]), np.array([tied]), np.array([candidates]), ties=ties)


def gain(metric: str, rank: int, candidates: int, k: int) -> float:
    """The textbook value of a metric for one relevant item at a rank, without ties."""
    if metric == "HR":
        return float(rank <= k)
    if metric == "NDCG":
        return 1 / math.log2(1 + rank) if rank <= k else 0.0
    if metric == "MRR":
        return 1 / rank
    return (candidates - rank) / (candidates - 1) if candidates > 1 else 0.5


def measured(metric: str, one: Standing, k: int) -> float:
    values = per_user(one, (k,))
    return float(values[metric if metric in ("MRR", "AUC") else f"{metric}@{k}"][0])


@pytest.mark.parametrize("metric", ["HR", "NDCG", "MRR", "AUC"])
@settings(max_examples=50)
@given(better=st.integers(0, 6), tied=st.integers(0, 4), worse=st.integers(0, 5), k=st.integers(1, 12))
def test_expected_ties_are_the_mean_over_all_orders_of_the_tied_block(
    metric: str, better: int, tied: int, worse: int, k: int
) -> None:
    orders = list(permutations(range(tied + 1)))  # item 0 of the block is the held-out one
    ranks = [better + 1 + order.index(0) for order in orders]
    expected = sum(gain(metric, rank, better + tied + worse + 1, k) for rank in ranks) / len(orders)
    assert measured(metric, standing(better, tied, worse), k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", ["HR", "NDCG", "MRR", "AUC"])
@settings(max_examples=50)
@given(better=st.integers(0, 20), tied=st.integers(0, 9), worse=st.integers(0, 20), k=st.integers(1, 30))
def test_last_ties_put_the_held_out_item_behind_its_block(
    metric: str, better: int, tied: int, worse: int, k: int
) -> None:
    one = standing(better, tied, worse, "last")
    expected = gain(metric, better + tied + 1, better + tied + worse + 1, k)
    assert int(one.first[0]) == int(one.last[0]) == better + tied + 1
    assert measured(metric, one, k) == pytest.approx(expected, abs=1e-12)


def test_users_are_measured_one_by_one() -> None:
    many = Standing(np.arange(3), np.array([0, 3, 9]), np.array([0, 0, 0]), np.array([50, 50, 50]), "expected")
    assert hit_rate(many, 5).tolist() == [1, 1, 0]
    assert ndcg(many, 5) == pytest.approx([1, 1 / math.log2(5), 0])
    assert ndcg(many, 10) == pytest.approx([1, 1 / math.log2(5), 1 / math.log2(11)])
    assert reciprocal_rank(many) == pytest.approx([1, 1 / 4, 1 / 10])
    assert area_under_curve(many) == pytest.approx([1, 46 / 49, 40 / 49])
    assert means(many, (5,)) == pytest.approx(
        {"HR@5": 2 / 3, "NDCG@5": (1 + 1 / math.log2(5)) / 3, "MRR": 1.35 / 3, "AUC": 135 / 147}
    )


def test_ndcg_of_the_one_relevant_item_is_one_at_the_top_and_falls_with_rank() -> None:
    values = [float(ndcg(standing(better, 0, 30 - better), 10)[0]) for better in range(12)]
    assert values[:3] == pytest.approx([1, 0.6309297535714575, 0.5])
    assert all(left > right for left, right in pairwise(values[:11]))
    assert values[10:] == [0, 0]


@pytest.mark.parametrize(
    ("better", "tied", "worse", "ties", "expected"),
    [
        (0, 0, 0, "expected", 0.5),
        (0, 0, 0, "last", 0.5),
        (0, 0, 8, "expected", 1.0),
        (8, 0, 0, "expected", 0.0),
        (0, 8, 0, "expected", 0.5),
        (0, 8, 0, "last", 0.0),
        (1, 2, 5, "expected", 6 / 8),
        (1, 2, 5, "last", 5 / 8),
    ],
)
def test_auc_is_the_share_of_others_beaten(better: int, tied: int, worse: int, ties: str, expected: float) -> None:
    assert float(area_under_curve(standing(better, tied, worse, ties))[0]) == pytest.approx(expected)


def test_tied_share_counts_users_not_ties() -> None:
    many = Standing(np.arange(4), np.zeros(4, int), np.array([0, 7, 0, 0]), np.full(4, 9), "last")
    assert many.tied_share == 0.25
    no_users = np.zeros(0, int)
    assert Standing(no_users, no_users, no_users, no_users, "last").tied_share == 0.0


def test_coverage_counts_distinct_items_and_skips_empty_places() -> None:
    assert coverage(np.array([[0, 1], [1, 3]]), 6) == 0.5
    assert coverage(np.array([[0, -1], [-1, -1]]), 4) == 0.25
    assert coverage(np.full((3, 2), -1), 4) == 0.0
    assert coverage(np.arange(8).reshape(4, 2), 8) == 1.0


def test_gini_is_zero_for_equal_shares_and_nears_one_for_one_item() -> None:
    assert gini(np.arange(12).reshape(4, 3), 12) == pytest.approx(0)
    assert gini(np.tile(np.arange(5), (7, 1)), 5) == pytest.approx(0)
    for items in (2, 10, 1000):
        assert gini(np.full((9, 1), 1), items) == pytest.approx(1 - 1 / items)
    assert gini(np.full((3, 2), -1), 4) == 0.0


@settings(max_examples=50)
@given(st.lists(st.integers(-1, 8), min_size=1, max_size=30), st.integers(9, 12))
def test_gini_is_half_the_relative_mean_difference(places: list[int], num_items: int) -> None:
    counts = np.array([places.count(item) for item in range(num_items)])
    differences = np.abs(counts[:, None] - counts).sum()
    expected = differences / (2 * num_items * counts.sum()) if counts.sum() else 0.0
    assert gini(np.array([places]), num_items) == pytest.approx(expected)
    assert coverage(np.array([places]), num_items) == pytest.approx((counts > 0).mean())


class Table:
    """Scores that are given."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = torch.from_numpy(table)

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        return self.table[users] if items is None else self.table[users].gather(1, items)


def random_split(users: int, items: int, seed: int) -> Split:
    random = np.random.default_rng(seed)
    counts = random.integers(3, 30, size=users)
    item = np.concatenate([random.choice(items, size=count, replace=False) for count in counts])
    times = random.permutation(len(item)).astype(np.int64)
    data = Interactions.from_rows("random", np.repeat(np.arange(users), counts), item, timestamp=times)
    return HONEST.prepare(data)


def library(ranker: Ranker, split: Split, table: np.ndarray, cutoffs: list[int]) -> dict[str, float]:
    """What the independent library makes of the same questions; every user is ranked."""
    rows = np.arange(split.num_users)
    shape = (split.num_users, split.num_items)
    truth = csr_matrix((np.ones(len(rows)), (rows, ranker.relevant.values.numpy())), shape=shape)
    hidden = csr_matrix(
        (
            np.ones(len(ranker.hidden.values)),
            (np.repeat(rows, ranker.hidden.lengths.numpy()), ranker.hidden.values.numpy()),
        ),
        shape=shape,
    )
    judge = Evaluator(truth, masked_interactions=hidden, n_threads=1)
    return judge.get_scores_from_score_matrix(table, cutoffs)


@pytest.mark.parametrize("stage", [0, 1], ids=["validation", "test"])
@pytest.mark.parametrize(("users", "items", "seed"), [(300, 80, 0), (400, 333, 1)])
def test_full_ranking_agrees_with_an_independent_library(stage: int, users: int, items: int, seed: int) -> None:
    split = random_split(users, items, seed)
    table = np.random.default_rng(seed + 100).normal(size=(users, split.num_items))
    ranker = rankers(HONEST, split, 0, CPU, 10**6)[stage]
    ours = means(ranker.rank(Table(table)), CUTOFFS)
    theirs = library(ranker, split, table, [*CUTOFFS, split.num_items])
    for k in CUTOFFS:
        assert ours[f"HR@{k}"] == pytest.approx(theirs[f"hit@{k}"], abs=1e-9)
        assert ours[f"NDCG@{k}"] == pytest.approx(theirs[f"ndcg@{k}"], abs=1e-9)
    # With one relevant item, average precision over the whole list is 1 / rank.
    assert ours["MRR"] == pytest.approx(theirs[f"map@{split.num_items}"], abs=1e-9)
    assert 0.01 < ours["HR@10"] < 0.5


def test_coverage_and_gini_agree_with_an_independent_library() -> None:
    split = random_split(300, 200, 2)
    random = np.random.default_rng(3)
    table = random.normal(size=(300, split.num_items)) + 2 * random.normal(size=split.num_items)
    ranker = rankers(HONEST, split, 0, CPU, 10**6)[1]
    lists = ranker.top(Table(table), 10)
    theirs = library(ranker, split, table, [10])
    assert coverage(lists, split.num_items) == pytest.approx(theirs["catalog_coverage@10"], abs=1e-9)
    assert gini(lists, split.num_items) == pytest.approx(theirs["gini_index@10"], abs=1e-9)


def test_sampled_ranking_agrees_with_an_independent_library() -> None:
    split = random_split(300, 200, 4)
    table = np.random.default_rng(5).normal(size=(300, split.num_items))
    _, ranker = rankers(Protocol(name="sampled", candidates=99), split, 0, CPU, 10**6)
    assert ranker.sampled is not None
    held = ranker.relevant.values.numpy()
    truth = csr_matrix((np.ones(300), (np.arange(300), held)), shape=table.shape)
    candidates = [sorted([item, *others]) for item, others in zip(held.tolist(), ranker.sampled.tolist(), strict=True)]
    judge = Evaluator(truth, per_user_recommendable_items=candidates, n_threads=1)
    theirs = judge.get_scores_from_score_matrix(table, [*CUTOFFS, 100])
    ours = means(ranker.rank(Table(table)), CUTOFFS)
    for k in CUTOFFS:
        assert ours[f"HR@{k}"] == pytest.approx(theirs[f"hit@{k}"], abs=1e-9)
        assert ours[f"NDCG@{k}"] == pytest.approx(theirs[f"ndcg@{k}"], abs=1e-9)
    assert ours["MRR"] == pytest.approx(theirs["map@100"], abs=1e-9)
