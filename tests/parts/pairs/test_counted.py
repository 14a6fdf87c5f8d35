"""Counts of pairs: popular items by dense products, the rest by sparse ones, equal to a product of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ownview.parts.pairs import counted


@pytest.mark.parametrize("popular", [1, 7, 40, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_pairs_are_those_of_a_dense_product(popular: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "_POPULAR", popular)
    monkeypatch.setattr(counted, "_PEOPLE", 16)
    generator = np.random.default_rng(0)
    whole: np.ndarray[Any, Any] = (
        generator.random((50, 40)) < np.linspace(0.02, 0.7, 40)[generator.permutation(40)]
    ).astype(kind)
    found = counted.pair_counts(csr_matrix(whole))
    assert found.dtype == kind
    assert np.array_equal(found, whole.T @ whole)


def test_nobody_has_anything() -> None:
    assert not counted.pair_counts(csr_matrix((3, 5), dtype=np.float32)).any()
