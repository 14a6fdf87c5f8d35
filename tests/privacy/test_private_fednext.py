"""FedNext under a budget: three releases of norm 1 a client, and a rank form alone."""

from __future__ import annotations

import pytest
import torch

from ownview import FederationOptions, FedNext
from ownview.base.errors import SettingError
from ownview.federation.scoring import scorer_of
from ownview.testing.worlds import federation, small_world


def test_every_client_sends_norm_one_in_all_releases() -> None:
    one = federation(FedNext(rank=5), small_world(), options=FederationOptions(privacy="central:epsilon=1e9"))
    everybody = torch.arange(one.world.num_clients)
    for number in (1, 2, 3):
        upload = one.work.do(one.work.samples(number, everybody), one.server.download(number, everybody))
        norms = upload.norms()
        assert bool((torch.isclose(norms, torch.ones_like(norms), atol=1e-12) | (norms == 0)).all())
        assert int((norms == 0).sum()) == (1 if number == 3 else 0), "one client has a single item, and no past"
        one.round(number)


def test_hardly_any_noise_gives_the_ridge_regression_of_normed_sums() -> None:
    method = FedNext(rank=60, scales=(3.0,), regularization=0.5)
    one = federation(method, small_world(), options=FederationOptions(privacy="central:epsilon=1e9"))
    for number in (1, 2, 3):
        one.round(number)
    shared, split = one.server.shared, small_world()
    pasts, follows = torch.zeros(60, 60, dtype=torch.float64), torch.zeros(60, 60, dtype=torch.float64)
    for client in range(split.num_users):
        items = split.timeline.of(client).items.of(0)
        place = (shared["place"][items] - 1).long()
        vectors = shared["vectors"][place]
        before = torch.zeros(len(items), 60, dtype=torch.float64)
        for t in range(1, len(items)):
            before[t] = torch.exp(-1 / torch.tensor(3.0, dtype=torch.float64)) * before[t - 1] + vectors[t - 1]
        own = torch.zeros(60, 60, dtype=torch.float64)
        for t in range(len(items)):
            for later in range(t, len(items)):
                own[place[later]] += torch.exp(torch.tensor(float(t - later), dtype=torch.float64)) * before[t]
        gram = before.T @ before
        norm = (gram.square().sum() + own.square().sum()).sqrt().clamp(min=1e-12)
        pasts, follows = pasts + gram / norm, follows + own / norm
    ridged = pasts + 0.5 * pasts.diagonal().mean() * torch.eye(60)
    wanted = torch.linalg.solve(ridged, follows.T).T
    assert torch.allclose(shared["next"], wanted, atol=1e-3)
    assert scorer_of(one).scores(torch.arange(3), None).shape == (3, 60)


def test_the_full_form_is_refused() -> None:
    with pytest.raises(SettingError, match="expected rank=64"):
        federation(FedNext(), small_world(), options=FederationOptions(privacy="central:epsilon=8"))
