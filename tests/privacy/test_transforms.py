"""Clipping and noise on uploads: what may be asked for, what is drawn, and that nothing leaves without it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ownview import (
    FederationOptions,
)
from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.transforms import Chain, Clip, Noise, Sending, Transform, gaussian, laplace, transforms
from tests.messages.uploads import upload_of

LAPLACE, GAUSSIAN = "laplace:0.3", "gaussian:clip=0.2,noise=3"
ITEMS = 60

SEEDED = NoiseKey.from_seed(0)


def _transform(text: str) -> Transform:
    found = transforms(text)
    assert found is not None
    return found


def _sending(upload: Upload, key: int, num_items: int) -> Sending:
    """Where every client counts the same."""
    return Sending(key, torch.ones_like(upload.samples), num_items, noise=SEEDED)


def _nothing(clients: int, *shape: int, name: str = "items") -> Upload:
    return upload_of(whole={name: torch.zeros(clients, *shape, dtype=torch.float64)}, items=[[0]] * clients)


# --- what may be asked for ---


def test_what_is_asked_for_is_what_is_read() -> None:
    assert transforms("none") is None
    assert transforms("laplace:0.5") == Noise(0.5, laplace)
    clipped = Chain((Clip(0.5), Noise(1.5, gaussian, weighted=True)))
    assert transforms("gaussian:clip=0.5,noise=3") == clipped
    assert transforms("gaussian:noise=3,clip=0.5") == clipped


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
    upload = _nothing(100, 400, 5)
    noise = _transform(text).on_client(upload, _sending(upload, derive(7, "test"), 400)).whole["items"].reshape(-1)
    n = len(noise)
    assert abs(float(noise.mean())) < 5 * deviation / math.sqrt(n)
    assert float(noise.std()) == pytest.approx(deviation, rel=5 * math.sqrt(1.25 / n))
    kind = text.partition(":")[0]
    for far in (-3 * scale, 3 * scale):  # both tails
        beyond = float(_cumulative(kind, torch.tensor(-abs(far), dtype=torch.float64), scale))
        found = float((noise * math.copysign(1, far) > abs(far)).double().mean())
        assert abs(found - beyond) < 5 * math.sqrt(beyond / n)
    cumulative = _cumulative(kind, noise.sort().values, scale)
    gap = float((cumulative - torch.arange(n, dtype=torch.float64) / n).abs().max())
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
    drawn = []
    for number in (1, 2):
        for name in ("items", "others"):
            upload = _nothing(6, 20, 2, name=name)
            drawn.append(
                _transform(text).on_client(upload, _sending(upload, derive(0, "privacy", number), 20)).whole[name]
            )
    together = torch.cat([noise.reshape(6, -1) for noise in drawn])
    assert len(torch.unique(together)) == together.numel(), "a number was drawn twice"
    between = torch.corrcoef(together)
    assert float((between - torch.eye(len(between))).abs().max()) < 5 / math.sqrt(40)


# --- clipping ---


def _changes() -> Upload:
    """Three clients: a small, a large and a huge change of a table's rows (some of them padding) and of a vector."""
    random = torch.Generator().manual_seed(1)
    size = torch.tensor([0.01, 3.0, 500.0], dtype=torch.float64)[:, None]
    table = torch.randn(3, 3, 2, generator=random, dtype=torch.float64) * size[:, :, None]
    vector = torch.randn(3, 2, generator=random, dtype=torch.float64) * size
    real = [[True, True, False], [True, True, True], [True, False, False]]
    return upload_of({"items": table}, {"bias": vector}, items=[[1, 4, 0], [0, 2, 3], [2, 0, 0]], touched=real)


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
    chosen = _transform(f"gaussian:clip={clip},noise=2")
    zero = replace(upload, rows={"items": upload.rows["items"] * 0}, whole={"bias": upload.whole["bias"] * 0})
    left, noise = (chosen.on_client(one, _sending(one, 11, 5)) for one in (upload, zero))
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
    upload = _changes()
    left = _transform("laplace:0.001").on_client(upload, _sending(upload, 11, 5))
    assert _norms(left) == pytest.approx(_norms(upload), rel=0.5)


WEIGHTS = torch.tensor([200, 3, 1])


def test_what_is_clipped_is_what_the_server_adds_up() -> None:
    """Not the change, but the change times the client's weight: the smallest change counts two hundredfold."""
    upload, clip = _changes(), 0.5
    weights, before = WEIGHTS.tolist(), _norms(upload)
    assert before[0] < clip < before[0] * weights[0]
    left = Clip(clip).on_client(upload, Sending(11, WEIGHTS, 5))
    assert [w * norm for w, norm in zip(weights, _norms(left), strict=True)] == pytest.approx([clip] * 3, rel=1e-9)


def test_noise_of_the_weighted_change_is_the_same_for_all_once_weighted() -> None:
    nothing = _nothing(3, 400, 5)
    noise = (
        Noise(0.7, gaussian, weighted=True).on_client(nothing, Sending(11, WEIGHTS, 400, noise=SEEDED)).whole["items"]
    )
    same = Noise(0.7, gaussian).on_client(nothing, Sending(11, WEIGHTS, 400, noise=SEEDED)).whole["items"]
    assert torch.allclose(noise * WEIGHTS[:, None, None], same, rtol=1e-12)
    assert same.reshape(3, -1).std(1).tolist() == pytest.approx([0.7] * 3, rel=0.15)
