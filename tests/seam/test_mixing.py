"""How a server weighs uploads: the projection onto the simplex, distances, and both similarities."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FedEM
from ownview.seam.mixing import (
    ClusterMean,
    ComponentSimilarity,
    Known,
    NeighbourGraph,
    Similarity,
    UpdateSimilarity,
    products_of_all,
    project_onto_simplex,
    squared_distances,
)
from ownview.seam.training import ANY_WORLD

Array = npt.NDArray[np.float64]
_NUMBERS = st.floats(-50, 50, allow_nan=False)


def _known(uploads: Tensor, shares: Tensor) -> Known:
    return Known(uploads, shares, torch.zeros_like(uploads[0]))


def _simplex_points(count: int, size: int, seed: int = 0) -> Array:
    """Random points of the simplex, its corners, and its centre."""
    random = np.random.default_rng(seed)
    inside = random.dirichlet(np.full(size, 0.5), size=count)
    return np.concatenate([inside, np.eye(size), np.full((1, size), 1 / size)])


def _projected(point: list[float]) -> Array:
    return project_onto_simplex(torch.tensor([point], dtype=torch.float64))[0].numpy()


# --- the projection ---


@given(st.lists(_NUMBERS, min_size=1, max_size=7), st.integers(0, 10**6))
@settings(max_examples=150)
def test_the_projection_is_the_nearest_point_of_the_simplex(point: list[float], seed: int) -> None:
    found = _projected(point)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-9)
    others = _simplex_points(200, len(point), seed)
    # Points on the way to the others are nearest rivals: a wrong answer loses against a short step already.
    rivals = np.concatenate([others, found + 1e-3 * (others - found)])
    distances = np.square(rivals - np.array(point)).sum(1)
    assert np.square(found - point).sum() <= distances.min() + 1e-9 * (1 + distances.min())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7).filter(lambda one: sum(one) > 1e-3))
@settings(max_examples=100)
def test_points_of_the_simplex_stay_where_they_are(weights: list[float]) -> None:
    point = [one / sum(weights) for one in weights]
    assert _projected(point) == pytest.approx(np.array(point), abs=1e-12)


@given(st.lists(st.one_of(st.just(-math.inf), _NUMBERS), min_size=1, max_size=7))
@settings(max_examples=100)
def test_entries_of_minus_infinity_get_nothing_and_change_nothing(point: list[float]) -> None:
    finite = [k for k, one in enumerate(point) if math.isfinite(one)]
    if not finite:
        return
    found = _projected(point)
    assert found[[k for k in range(len(point)) if k not in finite]].tolist() == [0.0] * (len(point) - len(finite))
    assert found[finite] == pytest.approx(_projected([point[k] for k in finite]), abs=1e-12)


@given(st.lists(_NUMBERS, min_size=1, max_size=5), st.sampled_from([1e3, -1e3, 1e9, -1e9, 1e20]))
@settings(max_examples=60)
def test_a_number_added_to_all_entries_changes_nothing_but_rounding(point: list[float], shift: float) -> None:
    """Large weights of similarity, or float32, must not push everybody out."""
    shifted = project_onto_simplex(torch.tensor([point], dtype=torch.float64) + shift)[0].numpy()
    assert shifted.sum() == pytest.approx(1, abs=1e-9)
    if abs(shift) <= 1e3:
        assert shifted == pytest.approx(_projected(point), abs=1e-9)


def test_rows_are_projected_one_by_one() -> None:
    points = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = project_onto_simplex(points)
    assert torch.equal(together, torch.cat([project_onto_simplex(row[None]) for row in points]))
    assert project_onto_simplex(torch.tensor([[0.8, 0.6, -3.0]])).tolist() == [pytest.approx([0.6, 0.4, 0.0])]


# --- distances ---


def _distances(points: Tensor) -> Array:
    rows = points.double().numpy()
    return np.array([[np.square(left - right).sum() for right in rows] for left in rows])


@pytest.mark.parametrize("shape", [(1, 5), (2, 1), (7, 30)])
def test_squared_distances_equal_a_loop(shape: tuple[int, int]) -> None:
    points = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert squared_distances(points).numpy() == pytest.approx(_distances(points), abs=1e-10)


def test_what_little_tables_differ_by_survives_a_long_common_part() -> None:
    random = torch.Generator().manual_seed(4)
    points = 300 * torch.randn(1, 4000, generator=random) + 0.05 * torch.randn(6, 4000, generator=random)
    assert points.dtype == torch.float32
    found, expected = squared_distances(points).numpy(), _distances(points)
    assert expected[0, 1] > 10
    assert found == pytest.approx(expected, rel=1e-3)
    assert (np.diag(found) == 0).all()
    lengths = points.square().sum(1)
    naive = (lengths[:, None] + lengths - 2 * points @ points.T).numpy()
    assert np.abs(naive - expected).max() > 10, "the common part must be long enough for this test to mean something"


# --- FedEM's rule ---


def _objective(weights: Array, shares: Array, similar: Array, alpha: float) -> Array:
    found: Array = np.square(weights - shares).sum(-1) + alpha * np.square(weights - similar).sum(-1)
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9, 20.0])
@pytest.mark.parametrize("spread", [0.05, 0.5, 5.0])
def test_similarity_minimises_its_objective(alpha: float, spread: float) -> None:
    random = torch.Generator().manual_seed(5)
    uploads = spread * torch.randn(5, 8, dtype=torch.float64, generator=random)
    shares = np.array([0.4, 0.1, 0.2, 0.25, 0.05])
    weights = Similarity(alpha).weights(_known(uploads, torch.tensor(shares))).numpy()
    similar = 1 / (1 + _distances(uploads))
    for u in range(5):
        assert weights[u].sum() == pytest.approx(1, abs=1e-12)
        assert (weights[u] >= 0).all()
        others = _simplex_points(3000, 5, seed=u)
        rivals = np.concatenate([others, weights[u] + 1e-3 * (others - weights[u])])
        best = _objective(weights[u], shares, similar[u], alpha)
        assert best <= _objective(rivals, shares, similar[u], alpha).min() + 1e-12
    if alpha == 0:
        assert weights == pytest.approx(np.tile(shares, (5, 1)), abs=1e-12)


def test_clients_far_from_everybody_receive_their_own_upload_in_the_limit() -> None:
    uploads = 1e3 * torch.eye(3, dtype=torch.float64)
    weights = Similarity(1e6).weights(_known(uploads, torch.full((3,), 1 / 3, dtype=torch.float64)))
    assert weights.numpy() == pytest.approx(np.eye(3), abs=1e-5)


# --- the rule of components ---


def _component_weights(tables: Array, shares: Array, alpha: float) -> Array:
    """By singular values and bisection."""
    components = []
    for table in tables:
        left, lengths, _ = np.linalg.svd(table - table.mean(0), full_matrices=False)
        one = left[:, 0] * lengths[0]
        components.append(one * np.sign(one[np.abs(one).argmax()]))
    rows = []
    for mine in components:
        similar = np.array([1 / (1 + np.linalg.norm(mine - theirs)) for theirs in components])
        target = shares + alpha * np.where(similar > 0.9, 1.0, similar)
        low, high = target.min() - 1, target.max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(target - middle, 0).sum() > 1 else (low, middle)
        rows.append(np.maximum(target - low, 0))
    return np.array(rows)


def _tables(seed: int, spread: float) -> tuple[Tensor, Tensor]:
    """Five clients' tables of nine rows, and shares."""
    random = torch.Generator().manual_seed(seed)
    common = torch.randn(1, 9, 3, dtype=torch.float64, generator=random)
    tables = common + spread * torch.randn(5, 9, 3, dtype=torch.float64, generator=random)
    return tables, torch.tensor([0.4, 0.1, 0.2, 0.25, 0.05], dtype=torch.float64)


@pytest.mark.parametrize("spread", [0.01, 0.1, 1.0])
def test_components_by_singular_values(spread: float) -> None:
    tables, shares = _tables(0, spread)
    found = ComponentSimilarity(0.7, 3).weights(_known(tables.reshape(5, -1), shares)).numpy()
    assert found == pytest.approx(_component_weights(tables.numpy(), shares.numpy(), 0.7), abs=1e-9)
    assert found.sum(1) == pytest.approx(np.ones(5), abs=1e-12)


def test_equal_tables_are_alike_whatever_the_weight() -> None:
    """Similarity 1 with everybody adds the same to every entry, so that only the shares are left."""
    tables, shares = _tables(1, 0.0)
    found = ComponentSimilarity(0.7, 3).weights(_known(tables.reshape(5, -1), shares))
    assert found.numpy() == pytest.approx(np.tile(shares.numpy(), (5, 1)), abs=1e-12)


def test_neither_signs_nor_rotations_nor_shifts_matter() -> None:
    """All of them leave the rows' places along the first direction as they are, but for its arbitrary sign."""
    tables, shares = _tables(2, 0.3)
    random = torch.Generator().manual_seed(9)
    before = ComponentSimilarity(0.7, 3).weights(_known(tables.reshape(5, -1), shares)).numpy()
    assert np.abs(before - shares.numpy()).max() > 0.05
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0], dtype=torch.float64)[:, None, None]
    rotations = torch.linalg.qr(torch.randn(5, 3, 3, dtype=torch.float64, generator=random)).Q
    shifts = torch.randn(5, 1, 3, dtype=torch.float64, generator=random)
    for changed in (signs * tables, tables @ rotations, tables + shifts):
        after = ComponentSimilarity(0.7, 3).weights(_known(changed.reshape(5, -1), shares)).numpy()
        assert after == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.9, 1e9])
@pytest.mark.parametrize("similarity", ["tables", "components"])
def test_rows_sum_to_one_in_float32_at_any_weight(similarity: str, alpha: float) -> None:
    rule = FedEM(embedding_size=3, similarity=similarity, alpha=alpha).server(ANY_WORLD).mixing
    assert rule is not None
    tables, shares = _tables(3, 0.5)
    weights = rule.weights(_known(tables.reshape(5, -1).float(), shares.float()))
    assert isinstance(weights, torch.Tensor)
    assert weights.sum(1).tolist() == pytest.approx([1.0] * 5, abs=1e-5)
    assert (weights >= 0).all()


# --- pFedGraph's rule ---


@pytest.mark.parametrize("alpha", [0.2, 0.8, 50.0])
def test_likeness_of_updates_minimises_its_objective(alpha: float) -> None:
    random = torch.Generator().manual_seed(6)
    initial = torch.randn(8, dtype=torch.float64, generator=random)
    uploads = initial + torch.randn(5, 8, dtype=torch.float64, generator=random)
    shares = np.array([0.4, 0.1, 0.2, 0.25, 0.05])
    weights = UpdateSimilarity(alpha).weights(Known(uploads, torch.tensor(shares), initial)).numpy()
    changes = (uploads - initial).numpy()
    lengths = np.linalg.norm(changes, axis=1)
    apart = -changes @ changes.T / np.outer(lengths, lengths)
    for u in range(5):
        rivals = _simplex_points(3000, 5, seed=u)
        rivals = np.concatenate([rivals, weights[u] + 1e-3 * (rivals - weights[u])])
        found, others = (w @ apart[u] + alpha * np.square(w - shares).sum(-1) for w in (weights[u], rivals))
        assert weights[u].sum() == pytest.approx(1, abs=1e-12)
        assert found <= others.min() + 1e-12


def test_a_client_that_changed_nothing_is_like_nobody() -> None:
    initial = torch.ones(3, dtype=torch.float64)
    uploads = torch.stack([initial, initial + torch.tensor([1.0, 0, 0]), initial + torch.tensor([2.0, 0, 0])])
    weights = UpdateSimilarity(1.0).weights(Known(uploads, torch.full((3,), 1 / 3).double(), initial))
    assert weights[0].tolist() == pytest.approx([1 / 3] * 3)
    assert weights[1].tolist() == weights[2].tolist() == pytest.approx([0, 0.5, 0.5])


# --- GPFedRec's rule ---


def _by_loop(uploads: Array, threshold: float, distances: bool) -> Array:
    lengths = np.linalg.norm(uploads, axis=1)
    similar = uploads @ uploads.T / np.outer(lengths, lengths)
    similar = 1 - similar if distances else similar
    if distances:
        np.fill_diagonal(similar, 0)
    weights = np.zeros_like(similar)
    for u, row in enumerate(similar):
        near = np.flatnonzero(row > threshold * similar.mean())
        weights[u, near if len(near) else u] = 1 / max(len(near), 1)
    return weights


@pytest.mark.parametrize("distances", [False, True])
@pytest.mark.parametrize("threshold", [0.2, 1.0, 1.5, 50.0])
def test_neighbours_equal_a_loop(threshold: float, distances: bool) -> None:
    random = torch.Generator().manual_seed(8)
    uploads = 1 + torch.randn(9, 40, dtype=torch.float64, generator=random)
    found = NeighbourGraph(threshold, distances).weights(_known(uploads, torch.full((9,), 1 / 9))).numpy()
    assert found == pytest.approx(_by_loop(uploads.numpy(), threshold, distances), abs=1e-12)
    if threshold == 1.0:
        assert (np.diag(found) > 0).all() != distances, "with distances nobody is a neighbour of itself"
        assert 0 < (found > 0).mean() < 1


def test_neighbours_of_small_differences_survive_float32() -> None:
    """Tables of one federation are nearly equal: their cosines differ in the sixth digit."""
    random = torch.Generator().manual_seed(9)
    common = torch.randn(1, 4000, generator=random)
    kinds = 0.004 * torch.randn(2, 4000, generator=random)[torch.tensor([0, 0, 0, 1, 1, 1])]
    uploads = common + kinds + 0.0005 * torch.randn(6, 4000, generator=random)
    weights = NeighbourGraph(1.0).weights(_known(uploads, torch.full((6,), 1 / 6)))
    assert (weights > 0).int().tolist() == [[1, 1, 1, 0, 0, 0]] * 3 + [[0, 0, 0, 1, 1, 1]] * 3


# --- PerFedRec's rule ---


def test_the_mean_of_ones_cluster() -> None:
    users = torch.tensor([[0.0], [9.0], [0.1], [9.1], [0.2]], dtype=torch.float64)
    uploads = torch.arange(5.0).double()[:, None]
    known = Known(uploads, torch.full((5,), 0.2).double(), torch.zeros(1), {"user": users}, key=4)
    weights = ClusterMean("user", 2).weights(known)
    assert (weights @ uploads)[:, 0].tolist() == pytest.approx([2, 2, 2, 2, 2])
    assert weights[1].tolist() == [0, 0.5, 0, 0.5, 0]
    assert weights[0].tolist() == pytest.approx([1 / 3, 0, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("rows", [1, 4, 5, 11])
def test_half_of_all_products_gives_all_of_them(rows: int) -> None:
    points = torch.randn(rows, 7, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    assert torch.allclose(products_of_all(points, together=4), points @ points.T, rtol=1e-12, atol=1e-12)
