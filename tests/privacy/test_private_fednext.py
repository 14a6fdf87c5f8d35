"""FedNext under a budget: three releases of norm 1 a client, and a rank form alone."""

from __future__ import annotations

import pytest
import torch

from ownview import FedEASE, Federated, FederationOptions, FedNext
from ownview.base.errors import SettingError
from ownview.round.scorers import scorer_of
from ownview.seam.portable import Linear
from ownview.testing.worlds import federation, small_world


def test_every_client_sends_norm_one_in_all_releases() -> None:
    one = federation(FedNext(rank=5), small_world(), options=FederationOptions(privacy="central:epsilon=1e9"))
    clients = torch.arange(one.world.num_clients)
    for number in (1, 2, 3):
        upload = one.work.do(one.work.samples(number, clients), one.server.download(number, clients))
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


@pytest.mark.parametrize("method", [FedEASE(), FedNext(rank=5)], ids=["fedease", "fednext"])
def test_what_is_taken_along_ranks_as_clients_do(method: Federated) -> None:
    split = small_world(num_items=130)
    one = federation(method, split, options=FederationOptions(privacy="central:epsilon=2000"))
    for number in range(1, len(method.releases) + 1):
        one.round(number)
    form = method.portable({name: value.cpu() for name, value in one.server.shared.items()}, one.world)
    assert isinstance(form, Linear)
    assert form.bias is not None
    scores = scorer_of(one).scores(torch.arange(split.num_users), None)
    for client in range(split.num_users):
        history = split.timeline.of(client).items.of(0)
        taken = form.bias + sum(term.scores(history) for term in form.terms)
        best = scores[client].argsort(descending=True)
        assert torch.equal(taken.argsort(descending=True)[:10], best[:10])
        assert torch.equal(taken.argsort(descending=True)[-10:], best[-10:])


def test_the_full_form_is_refused() -> None:
    with pytest.raises(SettingError, match="expected rank=64"):
        federation(FedNext(), small_world(), options=FederationOptions(privacy="central:epsilon=8"))
