"""Noise on uploads: what may be asked for, what is drawn, in which order, and that nothing leaves without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from ownview import FedEM, FederationOptions, FedMF, LocalOnly, Method, Param, PFedRec
from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.engine.samples import Samples
from ownview.federation.mixtures import Mixtures
from ownview.federation.privacy import Privacy, gaussian, laplace, privacy
from ownview.federation.round import Federation
from ownview.federation.server import MeanChange
from ownview.federation.uploads import Upload
from ownview.seam.initial import Constant
from ownview.seam.training import Params, Phase, World
from ownview.testing import federation, small_world

LAPLACE, GAUSSIAN = "laplace:0.3", "gaussian:clip=0.2,noise=3"
ITEMS = 60


@dataclass(frozen=True)
class Biased(FedMF):
    """FedMF with a shared number besides the shared table."""

    def params(self, world: World) -> dict[str, Param]:
        return {**super().params(world), "bias": Param((2,), shared=True, initial=Constant(0.1))}

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


def _federation(method: Method, protection: str, engine: str = "vector", block_clients: int = 128) -> Federation:
    options = FederationOptions(privacy=protection)
    return federation(method, small_world(), options=options, engine=engine, block_clients=block_clients)


def _upload(rows: Params, whole: Params, items: list[list[int]], num_rows: list[int]) -> Upload:
    """Changes of as many clients as there are lists of items."""
    count, place = len(items), torch.tensor(items)
    ones = torch.ones(count, dtype=torch.long)
    clients = torch.arange(count)
    samples = Samples(clients, place, torch.tensor(num_rows), place * 0, place * 0.0, ones, (1,) * count)
    return Upload(samples, rows, whole, ones)


def _nothing(clients: int, *shape: int, name: str = "items") -> Upload:
    whole = {name: torch.zeros(clients, *shape, dtype=torch.float64)}
    return _upload({}, whole, [[0]] * clients, [1] * clients)


# --- what may be asked for ---


def test_what_is_asked_for_is_what_is_read() -> None:
    assert privacy("none") is None
    assert privacy("laplace:0.5") == Privacy(math.inf, 0.5, laplace)
    assert privacy("gaussian:clip=0.5,noise=3") == Privacy(0.5, 1.5, gaussian)
    assert privacy("gaussian:noise=3,clip=0.5") == Privacy(0.5, 1.5, gaussian)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gaussian", "protects only what was clipped"),
        ("gaussian:noise=1", "protects only what was clipped"),
        ("gaussian:1", "protects only what was clipped"),
        ("gaussian:clip=1", "expected none, laplace:SCALE"),
        ("gaussian:clip=1,noise=1,delta=1", "expected none, laplace:SCALE"),
        ("gaussian:clip=1,sigma=1", "expected none, laplace:SCALE"),
        ("gaussian:clip=1,clip=2,noise=1", "expected none, laplace:SCALE"),
        ("gaussian:clip=,noise=1", "'' is not above 0"),
        ("gaussian:clip=1,noise", "'' is not above 0"),
        ("gaussian:clip=-1,noise=1", "'-1' is not above 0"),
        ("gaussian:clip=1,noise=-2", "'-2' is not above 0"),
        ("gaussian:clip=1,noise=0", "'0' is not above 0"),
        ("gaussian:clip=inf,noise=1", "'inf' is not above 0"),
        ("laplace", "'' is not above 0"),
        ("laplace:", "'' is not above 0"),
        ("laplace:0", "'0' is not above 0"),
        ("laplace:-0.5", "'-0.5' is not above 0"),
        ("laplace:nan", "'nan' is not above 0"),
        ("laplace:much", "'much' is not above 0"),
        ("laplace:0.5:0.5", "'0.5:0.5' is not above 0"),
        ("laplac:0.5", "did you mean 'laplace'"),
        ("gauss:clip=1,noise=1", "did you mean 'gaussian'"),
        ("Laplace:0.5", "did you mean 'laplace'"),
        ("epsilon:1", "expected none, laplace:SCALE"),
        ("", "expected none, laplace:SCALE"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(SettingError, match="federation setting privacy=") as caught:
        FederationOptions(privacy=text)
    assert reason in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "laplace:SCALE" in str(caught.value)


# --- what is drawn ---


def _cumulative(kind: str, x: Tensor, scale: float) -> Tensor:
    if kind == "laplace":
        return torch.where(x < 0, torch.exp(x / scale) / 2, 1 - torch.exp(-x / scale) / 2)
    return (1 + torch.erf(x / (scale * math.sqrt(2)))) / 2


@pytest.mark.parametrize(
    ("text", "scale", "deviation"), [("laplace:0.7", 0.7, 0.7 * math.sqrt(2)), ("gaussian:clip=0.35,noise=2", 0.7, 0.7)]
)
def test_the_noise_has_its_distribution(text: str, scale: float, deviation: float) -> None:
    """Mean, deviation, tails and the largest gap between distributions (Kolmogorov-Smirnov), at five sigma or so."""
    protection = privacy(text)
    assert protection is not None
    noise = protection.protect(_nothing(100, 400, 5), derive(7, "test"), 400).whole["items"].reshape(-1)
    n = len(noise)
    assert abs(float(noise.mean())) < 5 * deviation / math.sqrt(n)
    assert float(noise.std()) == pytest.approx(deviation, rel=5 * math.sqrt(1.25 / n))
    kind = text.partition(":")[0]
    for far in (-3 * scale, 3 * scale):  # both tails
        beyond = float(_cumulative(kind, torch.tensor(-abs(far), dtype=torch.float64), scale))
        found = float((noise * math.copysign(1, far) > abs(far)).double().mean())
        assert abs(found - beyond) < 5 * math.sqrt(beyond / n)
    found = _cumulative(kind, noise.sort().values, scale)
    gap = float((found - torch.arange(n, dtype=torch.float64) / n).abs().max())
    assert gap * math.sqrt(n) < 2.5


@pytest.mark.parametrize("draw", [laplace, gaussian])
def test_the_noise_is_finite_at_the_ends_of_the_unit_interval(draw: object) -> None:
    ends = torch.tensor([0.0, 2.0**-53, 0.5, 1 - 2.0**-53], dtype=torch.float64)
    noise = draw(ends, 1.0)  # type: ignore[operator]
    assert torch.isfinite(noise).all()
    assert noise[0] < -5 < 5 < noise[3]
    assert noise[2] == 0


@pytest.mark.parametrize("text", [LAPLACE, GAUSSIAN])
def test_noise_differs_by_client_round_and_parameter(text: str) -> None:
    protection = privacy(text)
    assert protection is not None
    drawn = [
        protection.protect(_nothing(6, 20, 2, name=name), derive(0, "privacy", number), 20).whole[name]
        for number in (1, 2)
        for name in ("items", "others")
    ]
    together = torch.cat([noise.reshape(6, -1) for noise in drawn])
    assert len(together.unique()) == together.numel(), "a number was drawn twice"
    between = torch.corrcoef(together)
    assert float((between - torch.eye(len(between))).abs().max()) < 5 / math.sqrt(40)


# --- clipping ---


def _changes() -> Upload:
    """Three clients: a small, a large and a huge change of a table's rows (some of them padding) and of a vector."""
    random = torch.Generator().manual_seed(1)
    size = torch.tensor([0.01, 3.0, 500.0], dtype=torch.float64)[:, None]
    table = torch.randn(3, 3, 2, generator=random, dtype=torch.float64) * size[:, :, None]
    vector = torch.randn(3, 2, generator=random, dtype=torch.float64) * size
    return _upload({"items": table}, {"bias": vector}, [[1, 4, 0], [0, 2, 3], [2, 0, 0]], [2, 3, 1])


def _norms(upload: Upload) -> list[float]:
    """Of everything each client sends, over whole tables."""
    whole = upload.spread(5).whole.values()
    return [math.sqrt(sum(float(part[k].square().sum()) for part in whole)) for k in range(3)]


def test_the_norm_is_of_everything_a_client_sends_without_padding() -> None:
    upload = _changes()
    assert upload.norms().tolist() == pytest.approx(_norms(upload), rel=1e-12)
    padded = upload.rows["items"].clone()
    padded[0, 2], padded[2, 1:] = 1e6, 1e6
    same = replace(upload, rows={"items": padded})
    assert same.norms().tolist() == pytest.approx(_norms(upload), rel=1e-12)
    assert torch.equal(same.spread(5).whole["items"], upload.spread(5).whole["items"])


def test_spreading_puts_rows_in_their_places() -> None:
    upload = _changes()
    whole = upload.spread(5).whole["items"]
    changes = upload.rows["items"]
    expected = torch.zeros(3, 5, 2, dtype=torch.float64)
    expected[0, [1, 4]], expected[1, [0, 2, 3]], expected[2, 2] = changes[0, :2], changes[1], changes[2, 0]
    assert torch.equal(whole, expected)


def test_clipping_comes_before_noise() -> None:
    """What leaves, less the noise, is the change cut to the norm; with the noise it is longer than that."""
    upload, clip = _changes(), 0.5
    protection = privacy(f"gaussian:clip={clip},noise=2")
    assert protection is not None
    zero = replace(upload, rows={"items": upload.rows["items"] * 0}, whole={"bias": upload.whole["bias"] * 0})
    left, noise = (protection.protect(one, 11, 5) for one in (upload, zero))
    assert left.rows == {}
    without = replace(left, whole={name: left.whole[name] - noise.whole[name] for name in left.whole})
    norms, before = _norms(without), _norms(upload)
    assert before[0] < clip < before[1] < before[2]
    assert norms == pytest.approx([before[0], clip, clip], rel=1e-9)
    for k, factor in enumerate([1.0, clip / before[1], clip / before[2]]):
        for name, change in upload.spread(5).whole.items():
            assert torch.allclose(without.whole[name][k], change[k] * factor, atol=1e-12)
    assert min(_norms(left)) > 2 * clip


def test_laplace_clips_nothing() -> None:
    upload, protection = _changes(), privacy("laplace:0.001")
    assert protection is not None
    left = protection.protect(upload, 11, 5)
    assert _norms(left) == pytest.approx(_norms(upload), rel=0.5)


def test_nothing_to_send_is_nothing_to_protect() -> None:
    plain, protected = (_federation(LocalOnly(embedding_size=3), text) for text in ("none", GAUSSIAN))
    plain.round(1)
    protected.round(1)
    assert torch.equal(plain.state.own["user"], protected.state.own["user"])


# --- in a federation ---


class Spy:
    """Notes what reaches the server."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.uploads: list[Upload] = []
        self.taken: dict[int, Tensor] = {}
        add, take = MeanChange.add, Mixtures.take

        def spied_add(change: MeanChange, upload: Upload) -> None:
            self.uploads.append(upload)
            add(change, upload)

        def spied_take(mixtures: Mixtures, clients: Tensor, uploads: Tensor) -> None:
            self.taken |= dict(zip(clients.tolist(), uploads, strict=True))
            take(mixtures, clients, uploads)

        patch.setattr(MeanChange, "add", spied_add)
        patch.setattr(Mixtures, "take", spied_take)

    def changes(self) -> dict[tuple[int, str], Tensor]:
        """By client and parameter, whole tables."""
        return {
            (client, name): change[k]
            for upload in self.uploads
            for name, change in upload.spread(ITEMS).whole.items()
            for k, client in enumerate(upload.samples.clients.tolist())
        }


def _spied(method: Method, protection: str) -> tuple[Spy, Federation, Params]:
    """A round, what reached the server in it, and what the server had before."""
    with pytest.MonkeyPatch.context() as patch:
        spy, one = Spy(patch), _federation(method, protection)
        before = {name: value.clone() for name, value in one.state.shared.items()}
        one.round(1)
    return spy, one, before


@pytest.mark.parametrize("protection", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_the_server_gets_nothing_without_noise(method: Method, protection: str) -> None:
    """Every value of every client, touched or not, differs from the plain one, by noise of the scale asked for."""
    spy, one, before = _spied(method, protection)
    plain, _, _ = _spied(method, "none")
    shared = {name for name, param in method.params(one.world).items() if param.shared}
    sent, unprotected = spy.changes(), plain.changes()
    assert set(sent) == {(client, name) for client in range(one.world.num_clients) for name in shared}
    assert all(upload.rows == {} for upload in spy.uploads)
    chosen, noise = privacy(protection), []
    assert chosen is not None
    for client in range(one.world.num_clients):
        length = math.sqrt(sum(float(unprotected[client, name].square().sum()) for name in shared))
        factor = min(1.0, chosen.clip / length)
        noise += [(sent[client, name] - factor * unprotected[client, name]).reshape(-1) for name in shared]
    together = torch.cat(noise)
    assert len(together.unique()) == len(together) > 23 * ITEMS * 3 - 1
    assert float(together.abs().min()) > 0
    expected = chosen.scale * (1 if protection == LAPLACE else math.sqrt(2 / math.pi))
    assert float(together.abs().mean()) == pytest.approx(expected, rel=0.1)
    _assert_the_server_holds_only(spy, one, before)


def _assert_the_server_holds_only(spy: Spy, one: Federation, before: Params) -> None:
    """What the server holds after the round follows from what the spy saw, and from nothing else."""
    weights = {k: w for u in spy.uploads for k, w in zip(u.samples.clients.tolist(), u.weights.tolist(), strict=True)}
    total, sent = sum(weights.values()), spy.changes()
    for name, start in before.items():
        expected = start + torch.stack([sent[client, name] * w for client, w in weights.items()]).sum(0) / total
        assert torch.allclose(one.state.shared[name], expected, atol=1e-12)
    for name, mixtures in one.state.mixtures.items():
        assert len(spy.taken) == one.world.num_clients
        for client, taken in spy.taken.items():
            assert torch.allclose(taken, before[name] + sent[client, name], atol=1e-12)
            assert torch.equal(mixtures.uploads[client], taken.reshape(-1))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_what_a_client_keeps_is_not_noisy(method: Method) -> None:
    noisy, plain = (_federation(method, text) for text in (LAPLACE, "none"))
    noisy.round(1)
    plain.round(1)
    everybody = torch.arange(noisy.world.num_clients)
    for name in plain.state.own:
        assert torch.equal(noisy.state.own[name], plain.state.own[name])
    for name in plain.state.tables:
        assert torch.equal(noisy.state.whole(name, everybody), plain.state.whole(name, everybody))
    for name in plain.state.shared:
        assert not torch.allclose(noisy.state.shared[name], plain.state.shared[name], atol=1e-3)


@pytest.mark.parametrize("protection", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("method", [METHODS["fedmf"], METHODS["fedem, mixtures"]], ids=["fedmf", "fedem"])
def test_neither_blocks_nor_the_engine_matter(method: Method, protection: str) -> None:
    found = []
    for engine, block_clients in (("vector", 128), ("vector", 1), ("loop", 128)):
        one = _federation(method, protection, engine, block_clients)
        one.round(1)
        found.append(one.state.shared["items"])
    assert float((found[0] - found[1]).abs().max()) < 1e-12
    assert float((found[0] - found[2]).abs().max()) < 1e-12


def test_every_round_draws_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    protect, noise = Privacy.protect, []

    def spied(self: Privacy, upload: Upload, key: int, num_items: int) -> Upload:
        left = protect(self, upload, key, num_items)
        noise.append((left.whole["items"] - upload.spread(num_items).whole["items"]).reshape(-1))
        return left

    monkeypatch.setattr(Privacy, "protect", spied)
    one = _federation(METHODS["fedmf"], LAPLACE)
    one.round(1)
    one.round(2)
    first, second = torch.cat(noise).chunk(2)
    assert float((first - second).abs().min()) > 0
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 5 / math.sqrt(len(first))
