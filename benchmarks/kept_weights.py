"""EASE^R of a shop's items: its time beside LAPACK's own, and how far lists by its strongest weights are those by all.

    python -m benchmarks.kept_weights                              # 18,357 products, as of `benchmarks.shop`
    python -m benchmarks.kept_weights --products 3000 --customers 6000 --rows 50000

LAPACK factors and inverts the same matrix of all items in single precision, in place. Lists are those of people drawn
at random, by all of their products.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from benchmarks.shop import orders
from ownview.parts.pairs import positive_definite
from ownview.parts.pairs.positive_definite import KEPT, ease_weights, strongest

Made = TypeVar("Made")

_LAMBDA = 100.0
_LIST = 10


def histories(customers: int, products: int, rows: int) -> csr_matrix:
    """[n, m] 1 where a customer bought a product."""
    made = orders(customers, products, rows)
    bought = csr_matrix((np.ones(rows, dtype=np.float32), (made.customer, made.product)), shape=(customers, products))
    return (bought > 0).astype(np.float32)


def lists(bought: csr_matrix, weights: Tensor, people: Tensor) -> Tensor:
    """[k, 10] the best items of some people that they have not bought."""
    found = []
    for some in torch.split(people, 256):
        mine = bought[some.numpy()]
        scores = torch.from_numpy(np.asarray(mine @ weights.numpy()))
        rows, items = (torch.from_numpy(one.astype(np.int64)) for one in mine.nonzero())
        scores[rows, items] = -torch.inf
        found.append(scores.topk(_LIST, dim=1).indices)
    return torch.cat(found)


def agreement(lists: Tensor, others: Tensor) -> float:
    """Mean share of lists [k, 10] that others have too."""
    return float((lists[:, :, None] == others[:, None, :]).any(2).double().mean())


def _timed(name: str, work: Callable[[], Made]) -> tuple[Made, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:<40}{wall:8.1f} s{cpu:8.1f} CPU-s", flush=True)
    return made, cpu


def _lapack(gram: Tensor) -> None:
    place = gram.clone()
    place.diagonal().add_(_LAMBDA)
    place, failed = place.T, torch.empty((), dtype=torch.int32)
    torch.linalg.cholesky_ex(place, out=(place, failed))
    torch.cholesky_inverse(place, out=place)


def main() -> None:
    """Print times and shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=int, default=35_598)
    parser.add_argument("--products", type=int, default=18_357)
    parser.add_argument("--rows", type=int, default=296_337)
    parser.add_argument("--people", type=int, default=3_000)
    given = parser.parse_args()
    bought = histories(given.customers, given.products, given.rows)
    gram = torch.from_numpy((bought.T @ bought).toarray())
    _, theirs = _timed("LAPACK: factor and inverse, float32", lambda: _lapack(gram))
    _, ours = _timed("ease_weights", lambda: ease_weights(gram, _LAMBDA))
    print(f"ratio {ours / theirs:.2f} of CPU time")
    limit, positive_definite.MOST_IN_DOUBLE = positive_definite.MOST_IN_DOUBLE, 0
    weights = positive_definite.weights_of(positive_definite.ease_inverse(gram, _LAMBDA)).to(gram.dtype)
    people = torch.from_numpy(np.random.default_rng(0).permutation(given.customers)[: given.people])
    whole, _ = _timed(f"lists of {given.people:,} people by all weights", lambda: lists(bought, weights, people))
    for kept in (2 * KEPT, KEPT, KEPT // 2, KEPT // 4):  # fewer and fewer: what is gone need not come back
        share = agreement(whole, lists(bought, strongest(weights, kept), people))
        print(f"the strongest {kept:>5} of an item: {share:.2%} of the top ten", flush=True)
    positive_definite.MOST_IN_DOUBLE = limit


if __name__ == "__main__":
    main()
