"""Clipping and noise in whole rounds: nothing leaves without it, and nobody adds more than the clip allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from ownview import (
    PLGC,
    FedEM,
    Federated,
    FederationOptions,
    FedFast,
    FedMF,
    LocalOnly,
    Param,
    PerFedRec,
    PFedRec,
    shared,
)
from ownview.base.errors import SettingError
from ownview.federation import terms
from ownview.federation.tables.mixtures import Mixtures
from ownview.messages.sums import MeanPartial
from ownview.messages.upload import Upload
from ownview.privacy.transforms import Noise, Sending
from ownview.round.federation import Federation
from ownview.seam.initial import Constant
from ownview.seam.roles import PERSONAL
from ownview.seam.training import Params, Phase, World
from ownview.testing.worlds import federation, small_world

LAPLACE, GAUSSIAN = "laplace:0.3", "gaussian:clip=0.2,noise=3"
ITEMS = 60


@dataclass(frozen=True)
class Biased(FedMF):
    """FedMF with a shared number besides the shared table."""

    def params(self, world: World) -> dict[str, Param]:
        return {**super().params(world), "bias": shared(2, initial=Constant(0.1))}

    def phases(self, world: World) -> tuple[Phase, ...]:
        (phase,) = super().phases(world)
        step = replace(phase.steps[0], names=("user", "bias"))
        return (replace(phase, steps=(step,)),)

    def scores(self, p: Params) -> Tensor:
        return super().scores(p) + p["bias"].sum()


METHODS = {
    "fedmf": FedMF(embedding_size=3, local_epochs=2),
    "a shared number": Biased(embedding_size=3, local_epochs=2),
    "pfedrec": PFedRec(embedding_size=3),
    "fedem, mean": FedEM(embedding_size=3, local_epochs=2, aggregation="mean"),
    "fedem, mixtures": FedEM(embedding_size=3, local_epochs=2, aggregation="similarity"),
}


CLIPPED = {name: method for name, method in METHODS.items() if not name.startswith("fedem")}
"""Those that send changes: what has grown over all rounds cannot be clipped."""
PROTECTED = [(method, LAPLACE) for method in METHODS.values()] + [(method, GAUSSIAN) for method in CLIPPED.values()]
PROTECTED_NAMES = [f"{name}, laplace" for name in METHODS] + [f"{name}, gaussian" for name in CLIPPED]


def _federation(method: Federated, protection: str, engine: str = "vector", block_clients: int = 128) -> Federation:
    options = FederationOptions(privacy=protection)
    return federation(method, small_world(), options=options, engine=engine, block_clients=block_clients)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (FedEM(), "fedem: its server keeps every client's table and adds up no changes that a clip could bound"),
        (FedEM(aggregation="mean"), "fedem: its clients send whole values of their own, which have grown"),
        (FedFast(), "fedfast: its server weighs every row by the change itself, so that no clip bounds what is added"),
        (PLGC(inner=FedMF()), "plgc: its clients send whole values of their own, which have grown over all rounds"),
        (PerFedRec(), "perfedrec: its server keeps every client's table and adds up no changes"),
    ],
    ids=["fedem", "fedem, mean", "fedfast", "plgc", "perfedrec"],
)
def test_a_clip_that_bounds_nothing_is_refused_with_the_reason(method: Federated, reason: str) -> None:
    with pytest.raises(SettingError) as caught:
        _federation(method, GAUSSIAN)
    assert f"federation setting privacy={GAUSSIAN!r} makes no sense for {reason}" in str(caught.value)
    _federation(method, LAPLACE)


def test_nothing_to_send_is_nothing_to_protect() -> None:
    plain, protected = (_federation(LocalOnly(embedding_size=3), text) for text in ("none", GAUSSIAN))
    plain.round(1)
    protected.round(1)
    assert torch.equal(plain.clients.own["user"], protected.clients.own["user"])


class Spy:
    """Notes what reaches the server."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.uploads: list[Upload] = []
        self.taken: dict[int, Tensor] = {}
        add, take = MeanPartial.add, Mixtures.take

        def spied_add(total: MeanPartial, upload: Upload) -> None:
            self.uploads.append(upload)
            add(total, upload)

        def spied_take(mixtures: Mixtures, clients: Tensor, uploads: Tensor, samples: Tensor) -> None:
            self.taken |= dict(zip(clients.tolist(), uploads, strict=True))
            take(mixtures, clients, uploads, samples)

        patch.setattr(MeanPartial, "add", spied_add)
        patch.setattr(Mixtures, "take", spied_take)

    def changes(self) -> dict[tuple[int, str], Tensor]:
        """By client and parameter, whole tables; of personal tables, the tables themselves."""
        return {
            (client, name): change[k]
            for upload in self.uploads
            for name, change in upload.spread(ITEMS).whole.items()
            for k, client in enumerate(upload.clients.tolist())
        }

    def weights(self, weighting: str) -> dict[int, int]:
        """By client, how much it counts in the server's sum."""
        found = {k: w for one in self.uploads for k, w in zip(one.clients.tolist(), one.samples.tolist(), strict=True)}
        return found if weighting == "samples" else dict.fromkeys(found, 1)


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("method", CLIPPED.values(), ids=CLIPPED)
def test_no_client_adds_more_to_the_sum_than_the_clip(method: Federated, weighting: str) -> None:
    """w_u |x_u - x| is at most C, and exactly C where it was more; noise too small to matter."""
    plain = _contributions(method, "none", weighting)
    clip = sorted(plain.values())[len(plain) // 2]
    clipped = _contributions(method, f"gaussian:clip={clip},noise=1e-12", weighting)
    assert max(clipped.values()) <= clip * (1 + 1e-6)
    assert min(plain.values()) < clip < max(plain.values())
    assert clipped == pytest.approx({client: min(size, clip) for client, size in plain.items()}, rel=1e-6)


def _contributions(method: Federated, protection: str, weighting: str) -> dict[int, float]:
    """By client, the norm of what it adds to the server's sum in a round."""
    with pytest.MonkeyPatch.context() as patch:
        spy = Spy(patch)
        options = FederationOptions(privacy=protection, weighting=weighting)
        federation(method, small_world(), options=options).round(1)
    weights = spy.weights(weighting)
    squares = dict.fromkeys(weights, 0.0)
    for (client, _), change in spy.changes().items():
        squares[client] += float((weights[client] * change).square().sum())
    return {client: math.sqrt(total) for client, total in squares.items()}


def _spied(method: Federated, protection: str) -> tuple[Spy, Federation, Params]:
    """A round, what reached the server in it, and what the server had before."""
    with pytest.MonkeyPatch.context() as patch:
        spy, one = Spy(patch), _federation(method, protection)
        before = {name: value.clone() for name, value in one.server.shared.items()}
        one.round(1)
    return spy, one, before


@pytest.mark.parametrize(("method", "protection"), PROTECTED, ids=PROTECTED_NAMES)
def test_the_server_gets_nothing_without_noise(method: Federated, protection: str) -> None:
    """Every value of every client, touched or not, differs from the plain one, by noise of the scale asked for."""
    spy, one, before = _spied(method, protection)
    plain, _, _ = _spied(method, "none")
    names = {name for name, param in one.client.params.items() if param.sends}
    sent, unprotected, weights = spy.changes(), plain.changes(), spy.weights(one.terms.weighting)
    assert set(sent) == {(client, name) for client in range(one.world.num_clients) for name in names}
    assert all(upload.rows == {} for upload in spy.uploads)
    noise = []
    for client, weight in weights.items():
        length = weight * math.sqrt(sum(float(unprotected[client, name].square().sum()) for name in names))
        # Gaussian noise is that of the weighted change, which is clipped to 0.2; Laplace noise that of the change.
        factor, scaled = (1.0, 1) if protection == LAPLACE else (min(1.0, 0.2 / length), weight)
        noise += [scaled * (sent[client, name] - factor * unprotected[client, name]).reshape(-1) for name in names]
    together = torch.cat(noise)
    assert len(torch.unique(together)) == len(together) > 23 * ITEMS * 3 - 1
    assert float(together.abs().min()) > 0
    expected = 0.3 if protection == LAPLACE else 0.2 * 3 * math.sqrt(2 / math.pi)
    assert float(together.abs().mean()) == pytest.approx(expected, rel=0.1)
    _assert_the_server_holds_only(spy, one, before)


def _assert_the_server_holds_only(spy: Spy, one: Federation, before: Params) -> None:
    """What the server holds after the round follows from what the spy saw, and from nothing else."""
    weights, sent = spy.weights(one.terms.weighting), spy.changes()
    for name, start in before.items():
        begun = start if one.client.params[name].role is PERSONAL else torch.zeros_like(start)
        moved = torch.stack([(sent[client, name] - begun) * w for client, w in weights.items()]).sum(0)
        assert torch.allclose(one.server.shared[name], start + moved / sum(weights.values()), atol=1e-12)
    for name, mixtures in one.server.mixtures.items():
        assert len(spy.taken) == one.world.num_clients
        for client, taken in spy.taken.items():
            assert torch.equal(taken, sent[client, name])
            assert torch.equal(mixtures.uploads[client], taken.reshape(-1))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_a_client_keeps_is_not_noisy(method: Federated) -> None:
    noisy, plain = (_federation(method, text) for text in (LAPLACE, "none"))
    noisy.round(1)
    plain.round(1)
    clients = torch.arange(noisy.world.num_clients)
    for name in plain.clients.own:
        assert torch.equal(noisy.clients.own[name], plain.clients.own[name])
    for name in plain.clients.tables:
        assert torch.equal(noisy.clients.whole(name, clients), plain.clients.whole(name, clients))
    for name in plain.server.shared:
        assert not torch.allclose(noisy.server.shared[name], plain.server.shared[name], atol=1e-3)


@pytest.mark.parametrize(
    ("method", "protection"),
    [(METHODS["fedmf"], LAPLACE), (METHODS["fedmf"], GAUSSIAN), (METHODS["fedem, mixtures"], LAPLACE)],
    ids=["fedmf, laplace", "fedmf, gaussian", "fedem, laplace"],
)
def test_neither_blocks_nor_the_engine_matter(method: Federated, protection: str) -> None:
    found = []
    for engine, block_clients in (("vector", 128), ("vector", 1), ("loop", 128)):
        one = _federation(method, protection, engine, block_clients)
        one.round(1)
        found.append(one.server.shared["items"])
    assert float((found[0] - found[1]).abs().max()) < 1e-12
    assert float((found[0] - found[2]).abs().max()) < 1e-12


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_noise_that_is_drawn_for_few_clients_at_a_time_is_the_same(
    method: Federated, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, apart = (_federation(method, LAPLACE) for _ in range(2))
    together.round(1)
    spy = Spy(monkeypatch)
    monkeypatch.setattr(terms, "_NOISE_TOGETHER", 2 * ITEMS * 3 + 10)
    apart.round(1)
    assert {len(upload.clients) for upload in spy.uploads} <= {1, 2}
    assert len(spy.uploads) > 2
    for name, value in together.pack().items():
        assert torch.allclose(value, apart.pack()[name]), name


def test_every_round_draws_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    on_client, noise = Noise.on_client, []

    def spied(self: Noise, upload: Upload, sending: Sending) -> Upload:
        left = on_client(self, upload, sending)
        noise.append((left.whole["items"] - upload.spread(sending.num_items).whole["items"]).reshape(-1))
        return left

    monkeypatch.setattr(Noise, "on_client", spied)
    one = _federation(METHODS["fedmf"], LAPLACE)
    one.round(1)
    one.round(2)
    first, second = torch.cat(noise).chunk(2)
    assert float((first - second).abs().min()) > 0
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 5 / math.sqrt(len(first))
