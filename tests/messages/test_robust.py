"""Robust rules beside their definitions, written out by hand; and what they leave a liar."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import minimize

from ownview import FedMF
from ownview.base.errors import SettingError
from ownview.federation.options import FederationOptions
from ownview.messages.robust import robust_rule, settled
from ownview.messages.sums import MeanPartial
from ownview.messages.upload import Upload
from ownview.registry import METHODS
from ownview.seam.client import Product, Sent
from ownview.testing.worlds import federation, small_world

ITEMS, SIZE = 5, 3


def _uploads(clients: int = 9, seed: int = 0) -> list[Upload]:
    """Two blocks of clients that touch three of five rows each, and a vector; the last of them is far off."""
    random = torch.Generator().manual_seed(seed)
    items = torch.stack([torch.randperm(ITEMS, generator=random)[:3] for _ in range(clients)])
    rows = torch.randn(clients, 3, SIZE, generator=random, dtype=torch.float64)
    whole = torch.randn(clients, 2, generator=random, dtype=torch.float64)
    rows[-1] *= 1e6
    samples = torch.randint(1, 9, (clients,), generator=random)
    upload = Upload(torch.arange(clients), samples, items, torch.ones_like(items) > 0, {"items": rows}, {"bias": whole})
    return [upload.chosen(slice(0, 4)), upload.chosen(slice(4, None))]


def _mean(text: str, weighting: str = "uniform", uploads: list[Upload] | None = None) -> dict[str, torch.Tensor]:
    shared = {"items": torch.zeros(ITEMS, SIZE, dtype=torch.float64), "bias": torch.zeros(2, dtype=torch.float64)}
    total = MeanPartial(shared, torch.zeros(0, dtype=torch.float64), weighting)
    rule = robust_rule(text)
    given = _uploads() if uploads is None else uploads
    for one in given if rule is None else settled(given, rule, weighting):
        total.add(one)
    return dict(total.mean())


def _vectors() -> torch.Tensor:
    """[n, D] everything that clients send."""
    return torch.cat(
        [torch.cat([one.spread(ITEMS).whole[name].flatten(1) for name in ("bias", "items")], 1) for one in _uploads()]
    )


def _flat(found: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([found["bias"], found["items"].flatten()])


def test_bounded() -> None:
    """Rows, parts and samples, each by its own median."""
    before = _uploads()
    rows = torch.cat([one.rows["items"] for one in before])
    biases = torch.cat([one.whole["bias"] for one in before])
    samples = torch.cat([one.samples for one in before])
    rule = robust_rule("bounded:1.5")
    assert rule is not None
    after = [*settled(before, rule)]
    most = 1.5 * float(rows.norm(dim=2).median())
    shrunk = rows * (most / rows.norm(dim=2)).clamp(max=1)[..., None]
    norms = shrunk.flatten(1).norm(dim=1)
    shrunk = shrunk * (1.5 * norms.median() / norms).clamp(max=1)[:, None, None]
    torch.testing.assert_close(torch.cat([one.rows["items"] for one in after]), shrunk)
    norms = biases.norm(dim=1)
    torch.testing.assert_close(
        torch.cat([one.whole["bias"] for one in after]),
        biases * (1.5 * norms.median() / norms).clamp(max=1)[:, None],
    )
    most_samples = int(1.5 * float(samples.double().median()))
    assert torch.cat([one.samples for one in after]).tolist() == samples.clamp(max=most_samples).tolist()


def test_a_summand_in_factors_is_bounded_as_it_is_written_out() -> None:
    """A liar's row among honest ones, and blocks of either form, since long histories come written out."""
    random = torch.Generator().manual_seed(0)
    left, right = (torch.randn(9, 2, size, generator=random, dtype=torch.float64) for size in (6, SIZE))
    left[-1, :, 4] *= 1e6
    nothing = torch.zeros(9, 0, dtype=torch.long)

    def uploads(*forms: Sent) -> list[Upload]:
        places = [slice(0, 4), slice(4, 9)]
        return [
            Upload(torch.arange(9), torch.ones(9).long(), nothing, nothing > 0, sums={"g": form}).chosen(place)
            for form, place in zip(forms, places, strict=True)
        ]

    rule, whole = robust_rule("bounded:1.5"), left.mT @ right
    assert rule is not None
    expected = torch.cat([one.written_out()["g"] for one in settled(uploads(whole, whole), rule)])
    assert float(expected[-1].norm()) < 1e-4 * float(whole[-1].norm())
    for forms in ((Product(left, right), Product(left, right)), (Product(left, right), whole)):
        found = torch.cat([one.written_out()["g"] for one in settled(uploads(*forms), rule)])
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"local-only", "fedcia", "ifedrec"}))
def test_bounded_makes_sense_of_every_upload_in_clear(method: str) -> None:
    """Bounds that nobody exceeds change nothing, in any form of upload."""
    bounds = FederationOptions(robust="bounded:1000000")
    plain, bounded = (
        federation(METHODS[method](), small_world(num_users=12), options=one) for one in (FederationOptions(), bounds)
    )
    for one in (plain, bounded):
        one.round(1)
    for name, value in plain.server.shared.items():
        torch.testing.assert_close(bounded.server.shared[name], value, rtol=1e-4, atol=1e-5)


def test_what_differs_from_the_servers_table_is_bounded_of_a_personal_one() -> None:
    base = torch.full((ITEMS, SIZE), 7.0, dtype=torch.float64)
    change = torch.randn(9, ITEMS, SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    change[-1] *= 1e6
    nothing = torch.zeros(9, 0, dtype=torch.long)
    upload = Upload(torch.arange(9), torch.ones(9).long(), nothing, nothing > 0, whole={"items": base + change})
    rule = robust_rule("bounded:1")
    assert rule is not None
    (after,) = settled([upload], rule, personal={"items": base})
    most = float(change.norm(dim=2).median())
    assert float((after.whole["items"] - base).norm(dim=2).max()) <= most * (1 + 1e-9)
    kept = change.norm(dim=2) < most
    shrunk = change.flatten(1).norm(dim=1) > 0
    assert bool(kept.any())
    assert bool(shrunk.all())
    assert float((after.whole["items"][-1] - base).norm()) < 1e-3 * float(change[-1].norm())


@pytest.mark.parametrize("weighting", ["uniform", "samples"])
def test_clipped(weighting: str) -> None:
    vectors, samples = _vectors(), torch.cat([one.samples for one in _uploads()]).double()
    weights = samples if weighting == "samples" else torch.ones_like(samples)
    norms = vectors.norm(dim=1) * weights
    short = vectors * (2 * norms.median() / norms).clamp(max=1)[:, None]
    expected = (short * weights[:, None]).sum(0) / weights.sum()
    assert torch.allclose(_flat(_mean("clipped:2", weighting)), expected)
    assert torch.allclose(_flat(_mean("clipped:1e9", weighting)), _flat(_mean("none", weighting)))


@pytest.mark.parametrize(("text", "share"), [("trimmed:0.2", 0.2), ("median", 0.5)])
def test_trimmed_among_those_who_sent_a_number(text: str, share: float) -> None:
    found, sent = _mean(text), _uploads()
    for item in range(ITEMS):
        mine = torch.cat([one.rows["items"][one.items == item] for one in sent]).sort(dim=0).values
        cut = min(int(share * len(mine)), (len(mine) - 1) // 2)
        expected = mine[cut : len(mine) - cut].mean(0) * len(mine) / 9
        assert torch.allclose(found["items"][item], expected)
    biases = torch.cat([one.whole["bias"] for one in sent])
    if share == 0.5:
        assert torch.allclose(found["bias"], biases.median(0).values)


def test_krum_and_multi_krum() -> None:
    vectors = _vectors()
    squares = torch.cdist(vectors, vectors).square()
    sums = torch.stack([row.sort().values[1 : 9 - 2 - 2 + 1].sum() for row in squares])
    assert torch.allclose(_flat(_mean("krum:2")), vectors[sums.argmin()])
    assert torch.allclose(_flat(_mean("multi-krum:2")), vectors[sums.argsort()[:7]].mean(0))
    with pytest.raises(SettingError, match="expected 6 liars at most"):
        _mean("krum:7")


def test_geometric_median() -> None:
    vectors = _vectors()

    def distance(point: torch.Tensor) -> float:
        return float((vectors - torch.as_tensor(point)).norm(dim=1).sum())

    found = _flat(_mean("geometric"))
    best = minimize(distance, vectors.median(0).values.numpy(), method="Nelder-Mead", options={"maxiter": 20_000})
    assert distance(found) <= best.fun * (1 + 1e-6)


@pytest.mark.parametrize("text", ["clipped:1", "trimmed:0.2", "median", "krum:1", "multi-krum:1", "geometric"])
def test_one_liar_moves_the_mean_by_no_more_than_honest_ones_do(text: str) -> None:
    honest = _vectors()[:-1].norm(dim=1).max()
    assert float(_flat(_mean("none")).norm()) > 1e4
    assert float(_flat(_mean(text)).norm()) < 2 * float(honest)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cliped:2", "did you mean 'clipped'"), ("clipped", "expected a number between 0 and inf"),
        ("trimmed:0.7", "expected a number between 0 and 0.5"), ("krum:1.5", "a whole number of liars"),
        ("median:3", "expected none, bounded:F"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        FederationOptions(robust=text)


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("fedease", {"robust": "median"}, "has no upload in its middle; expected bounded:F"),
        ("fedmf", {"robust": "clipped:2", "privacy": "masked:clip=1"}, "hidden, noisy or clipped already"),
        ("pfedgraph", {"robust": "clipped:2"}, "its server keeps every client's table"),
        ("fedfast", {"robust": "clipped:2"}, "weighs every row by the change itself"),
        ("local-only", {"robust": "clipped:2"}, "nothing leaves its clients"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_the_reason(method: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        federation(METHODS[method](), small_world(num_users=8), options=FederationOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("robust", ["clipped:2", "trimmed:0.1", "geometric"])
def test_blocks_do_not_change_what_a_rule_makes(robust: str) -> None:
    found = []
    for size in (20, 3):
        one = federation(FedMF(embedding_size=4), small_world(num_users=20), options=FederationOptions(robust=robust))
        usual = one.work.blocks
        one.work.blocks = lambda clients, size=size, blocks=usual: [  # type: ignore[method-assign,misc]
            part for block in blocks(clients) for part in torch.split(block, size)
        ]
        one.round(1)
        found.append(one.server.shared["items"])
    assert torch.allclose(found[0], found[1], atol=1e-6)
