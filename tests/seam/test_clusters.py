"""k-means, and cohorts made of its clusters."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ownview.seam.clusters import cluster
from ownview.seam.cohorts import ClusteredCohort, Seen


def _groups_of_points(per_group: int = 20, groups: int = 4, seed: int = 0) -> Tensor:
    """Points far from those of other groups, group by group."""
    random = torch.Generator().manual_seed(seed)
    centres = 100 * torch.eye(groups, 6, dtype=torch.float64)
    return centres.repeat_interleave(per_group, 0) + torch.randn(groups * per_group, 6, generator=random).double()


@pytest.mark.parametrize("key", range(8))
def test_groups_that_lie_apart_are_found(key: int) -> None:
    found = cluster(_groups_of_points(), 4, key).reshape(4, 20)
    assert (found == found[:, :1]).all()
    assert sorted(found[:, 0].tolist()) == [0, 1, 2, 3]


def test_every_point_is_nearest_to_its_clusters_mean() -> None:
    """What Lloyd's algorithm ends with."""
    points = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = cluster(points, 5, 7)
    means = torch.stack([points[found == k].mean(0) for k in range(5)])
    assert torch.equal(torch.cdist(points, means).argmin(1), found)


def test_it_repeats_and_depends_on_the_key_alone() -> None:
    points = torch.randn(300, 4, generator=torch.Generator().manual_seed(2))
    assert torch.equal(cluster(points, 5, 3), cluster(points, 5, 3))
    assert torch.equal(cluster(points, 5, 3), cluster(points.double(), 5, 3))
    assert any(not torch.equal(cluster(points, 5, 3), cluster(points, 5, key)) for key in range(4, 12))


@pytest.mark.parametrize("count", [1, 5])
def test_equal_points_and_too_few_points_are_no_trouble(count: int) -> None:
    assert len(set(cluster(torch.ones(7, 2), count, 0).tolist())) == 1
    two = cluster(torch.tensor([[0.0], [0.0], [9.0]]), count, 0).tolist()
    assert two[0] == two[1]
    assert (two[2] != two[0]) == (count > 1)


def _seen(points: Tensor, number: int = 1) -> Seen:
    return Seen({"user": points}, seed=0, round=number)


def test_cohorts_are_drawn_evenly_and_anew_every_round() -> None:
    points = _groups_of_points()
    cohorts = [ClusteredCohort("user", 4, 0.9).choose(_seen(points, number), 12) for number in (1, 2)]
    for cohort in cohorts:
        assert cohort.tolist() == sorted(set(cohort.tolist()))
        assert torch.bincount(cohort // 20).tolist() == [3, 3, 3, 3]
    assert cohorts[0].tolist() != cohorts[1].tolist()


def test_a_small_cluster_gives_all_it_has_and_others_fill_up() -> None:
    points = _groups_of_points()[torch.cat([torch.arange(2), torch.arange(20, 80)])]
    cohort = ClusteredCohort("user", 4, 0.9).choose(_seen(points), 20)
    assert [int((cohort < 2).sum()), *torch.bincount((cohort[cohort >= 2] - 2) // 20).tolist()] == [2, 6, 6, 6]
    assert len(ClusteredCohort("user", 4, 0.9).choose(_seen(points), 1000)) == 62


def test_others_follow_the_delegates_of_their_cluster() -> None:
    points = _groups_of_points()
    cohort = torch.tensor([0, 1, 20])  # nobody of the last two groups
    newest = points.clone()
    newest[0] += 1.0
    newest[1] += 3.0
    newest[20] -= 4.0
    moves = ClusteredCohort("user", 4, 0.5).moves(_seen(points, number=3), cohort, {"user": newest})["user"]
    expected = torch.zeros_like(points)
    expected[2:20] = 0.5**3 * 2.0
    expected[21:40] = 0.5**3 * -4.0
    assert torch.allclose(moves, expected, atol=1e-12)
