"""FedEASE under a budget: what a client sends has norm 1, what the server makes of sums, and that it learns."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from ownview import FedEASE, FederationOptions
from ownview.parts.pairs.positive_definite import ease_weights
from ownview.parts.pairs.private_pairs import items_kept, weights_above
from ownview.privacy.planning import planned
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.protection import Protection
from ownview.seam.training import World
from ownview.testing.worlds import block_world, federation, small_world

NEARLY_NONE = "central:epsilon=1e9"


def _federation(privacy: str, **settings: Any) -> Federation:
    return federation(FedEASE(**settings), small_world(), options=FederationOptions(privacy=privacy))


def test_every_client_sends_norm_one_in_both_releases() -> None:
    one = _federation(NEARLY_NONE)
    clients = torch.arange(one.world.num_clients)
    for number, name in ((1, "popular"), (2, "pairs")):
        upload = one.work.do(one.work.samples(number, clients), one.server.download(number, clients))
        assert torch.allclose(upload.norms(), torch.ones(len(clients), dtype=torch.float64), atol=1e-12)
        assert float(upload.written_out()[name].flatten(1).norm(dim=1).min()) == pytest.approx(1.0)
        one.round(number)


def test_sums_with_hardly_any_noise_are_what_clients_have() -> None:
    one = _federation(NEARLY_NONE)
    one.round(1)
    split = small_world()
    wanted = torch.zeros(split.num_items, dtype=torch.float64)
    for client in range(split.num_users):
        own = torch.unique(split.train.of(client))
        wanted[own] += len(own) ** -0.5
    assert torch.allclose(one.server.shared["popular"], wanted, atol=1e-3)
    place = one.server.shared["place"]
    assert sorted(place.tolist()) == list(range(1, split.num_items + 1)), "all 60 items are kept: fewer than 100"
    assert int(place[wanted.argmax()]) == 1


def test_without_noise_and_edge_the_weights_are_those_of_ease() -> None:
    rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gram = rows.T @ rows
    assert torch.allclose(weights_above(gram, 5.0, 0.0), ease_weights(gram, 5.0), atol=1e-10)


def test_what_is_below_the_edge_counts_for_nothing() -> None:
    assert torch.equal(weights_above(torch.eye(4), 1.0, 2.0), torch.zeros(4, 4, dtype=torch.float64))
    one = torch.ones(3, 1, dtype=torch.float64) / math.sqrt(3)
    found = weights_above(10 * one @ one.T + 0.1 * torch.eye(3), 1.0, 6.0)
    lowered = (10.1 + math.sqrt(10.1**2 - 36)) / 2
    share = lowered / (lowered + 1) / 3
    assert found[0, 1] == pytest.approx(share / (1 - share))


def _plan(epsilon: float, clients: int, mode: str = "central") -> Protection:
    found = planned(FederationOptions(privacy=f"{mode}:epsilon={epsilon}"), clients, FedEASE.releases)
    assert found is not None
    return found


def test_how_many_items_are_kept_follows_the_rule() -> None:
    def kept(epsilon: float, users: int, items: int, mode: str = "central") -> int:
        return items_kept(World(users, items), _plan(epsilon, users, mode))

    assert kept(8, 6040, 3706) == round(6040 / 5 / 0.6002290722)
    assert kept(8, 943, 1682) == 314
    assert kept(1, 943, 1682) == 100
    assert kept(1, 943, 60) == 60
    assert kept(8, 10**6, 10**5) == 4096
    assert kept(8, 10**4, 10**4, "local") == 100


def test_it_learns_under_a_budget_that_means_something() -> None:
    """Half a thousand users of four groups with twelve items each: at epsilon 8 groups are told apart."""
    split = block_world(groups=4, users=125, items=12, per_user=8)
    one = federation(FedEASE(), split, options=FederationOptions(privacy="central:epsilon=8"))
    one.round(1)
    one.round(2)
    scores = scorer_of(one).scores(torch.arange(500), None)
    seen = torch.zeros_like(scores, dtype=torch.bool)
    for client in range(500):
        seen[client, split.train.of(client)] = True
    best = scores.masked_fill(seen, -1e9).argmax(1)
    group = torch.from_numpy(split.data.items[best.numpy()] // 12)
    right = group == torch.arange(500) // 125
    assert float(right.double().mean()) > 0.7, "chance is 1/10: few items of the own group are left"
