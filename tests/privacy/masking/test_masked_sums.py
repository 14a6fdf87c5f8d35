"""Masked sums in a federation: the same sums bit for bit, bounded whole numbers, and errors in one line."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FedEASE, Federated, FederationOptions, FedMF
from ownview.base.errors import MessageError, SettingError, TrainingError
from ownview.messages import wire
from ownview.messages.layout import Layout, Part
from ownview.messages.sums import MeanPartial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masked import Masked
from ownview.privacy.masking import primitives
from ownview.privacy.masking.exchange import Exchange, OwnMasks
from ownview.privacy.masks import MaskedSums, Masks, masked_sums
from ownview.privacy.transforms import Sending, Summing
from ownview.privacy.whole_steps import BOUND
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.client import Patch, Product, Sent
from ownview.seam.protection import Protection
from ownview.seam.server import EACH
from ownview.seam.training import ANY_WORLD
from ownview.testing.federated import alone_equals_vector
from ownview.testing.worlds import federation, small_world

CLIP = 0.7
FEDMF = FedMF(embedding_size=3, local_epochs=2)
SUMS = "masked:clip=5"
LAYOUT = Layout(
    (
        Part("rows", (9, 2)), Part("whole", (5,)), Part("p", (4, 4), summand=True),
        Part("c", (9, 9), summand=True, symmetric=True),
    )
)  # fmt: skip


def _uploads(scale: float, seed: int) -> Upload:
    """Of three clients, with everything that an upload may hold; "c" is symmetric."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return scale * torch.randn(3, *shape, generator=random, dtype=torch.float64)

    items = torch.stack([torch.randperm(9, generator=random)[:4] for _ in range(3)])
    touched = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    half = drawn(4, 4)
    sums: dict[str, Sent] = {"p": Product(drawn(2, 4), drawn(2, 4)), "c": Patch(items, items, half + half.mT)}
    shapes = {"p": (4, 4), "c": (9, 9)}
    return Upload(
        torch.arange(3), torch.ones(3), items, touched, {"rows": drawn(4, 2)}, {"whole": drawn(5)}, sums, shapes
    )


def _sending(number: int = 1, key: int = 11, bound: Tensor | None = None) -> Sending:
    return Sending(key, torch.ones(3), 9, number, bound)


@settings(max_examples=40)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 2**31), clients=st.integers(3, 10**5))
@example(scale=0.5, seed=67, clients=46)  # where a root in float32 gave 7e-9 too much
def test_nobody_adds_more_than_the_clip_after_rounding(scale: float, seed: int, clients: int) -> None:
    masked = Masked(LAYOUT, CLIP, clients, clients, Masks())
    before = _uploads(scale, seed)
    sent = masked.on_client(before, _sending())
    assert sent.words is not None
    assert not any((sent.rows, sent.whole, sent.sums, sent.items.numel(), bool(sent.samples.any())))
    seen = masked.seen(sent, 1, None)
    norms = seen.norms()
    assert bool((norms <= CLIP * (1 + 1e-12)).all())
    if float(before.norms().max()) <= CLIP:
        step = 1 / masked.coding(1, None).scale
        there = {**before.spread(9).whole, **before.written_out()}
        for name, value in {**seen.whole, **seen.sums}.items():
            assert isinstance(value, Tensor)
            assert float((value - there[name]).abs().max()) <= 2.01 * step  # diagonals have both halves' rounding


def test_a_symmetric_matrix_is_as_long_as_the_half_that_stands_for_it() -> None:
    half = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole, part = half + half.mT, Part("s", (5, 5), summand=True, symmetric=True)
    flat = part.flat(whole)
    assert flat.shape == (2, 15)
    assert torch.allclose(flat.norm(dim=1), whole.flatten(1).norm(dim=1))
    assert torch.allclose(part.whole(flat), whole)


def _shared(adaptive: bool = False) -> Protection:
    return Protection("distributed", 8.0, 1e-5, CLIP, adaptive, (2.0, 2.0), 5.0, "", "", 4)


def test_every_device_adds_its_share_of_the_noise_in_whole_steps() -> None:
    layout = Layout((Part("whole", (20_000,)), Part("s", (150, 150), summand=True, symmetric=True)))
    masked = Masked(layout, CLIP, 5, 4, Masks(), _shared())
    nothing = replace(_uploads(0.0, 0), rows={}, whole={}, sums={})
    sent = masked.on_client(nothing, _sending())
    assert sent.words is not None
    seen = masked.named(sent.words, 1, None)
    wanted = 2.0 * CLIP / math.sqrt(4)
    assert float(seen["whole"].std()) == pytest.approx(wanted, rel=0.02)
    assert torch.equal(seen["s"], seen["s"].mT)
    above = seen["s"][:, *torch.triu_indices(150, 150, 1)]
    assert float(above.std()) == pytest.approx(wanted / math.sqrt(2), rel=0.02)
    assert not torch.equal(sent.words[0], sent.words[1]), "every client has noise of its own"
    again = masked.on_client(nothing, _sending(2, key=12)).words
    assert again is not None
    assert not torch.equal(sent.words, again), "and another in every round"


def test_the_count_of_an_adaptive_clip_has_its_own_noise_and_all_together_the_budget() -> None:
    """In the vector the count is C sqrt(s / (1 - s)) / 1 long: with the changes it is C / sqrt(1 - s)."""
    plan = _shared(adaptive=True)
    masked = Masked(Layout((Part("whole", (5,)), Part(BOUND, ()))), CLIP, 5, 4, Masks(), plan)
    bound = torch.tensor(CLIP, dtype=torch.float64)
    quiet = replace(masked, plan=replace(plan, noise=(1e-4, 1e-4)))
    whole = replace(_uploads(1e3, 0), rows={}, sums={})
    words = quiet.on_client(whole, _sending(bound=bound)).words
    assert words is not None
    seen = quiet.named(words, 1, bound)
    assert seen[BOUND].tolist() == pytest.approx([-0.5] * 3, abs=0.01)
    assert seen["whole"].norm(dim=1).tolist() == pytest.approx([CLIP] * 3, rel=0.01)
    coding = masked.coding(1, bound)
    noise = plan.of_changes(1) * CLIP * coding.scale
    assert noise / coding.bound == pytest.approx(plan.noise[0])
    sums = MeanPartial({"whole": torch.zeros(5), BOUND: torch.tensor(0.0)}, torch.empty(0), "uniform")
    sums.words = words.sum(0) % MODULUS
    quiet.on_server(sums, Summing(1, bound))
    assert float(sums.sums[BOUND]) == pytest.approx(-1.5, abs=0.02)


def _after(method: Federated, privacy: str, rounds: int = 2, **options: Any) -> Federation:
    one = federation(method, small_world(), options=FederationOptions(privacy=privacy, **options))
    for number in range(1, rounds + 1):
        one.round(number)
    return one


@pytest.mark.parametrize(
    ("method", "privacy", "options"),
    [
        (FEDMF, SUMS, {}),
        (FEDMF, "distributed:epsilon=50,rounds=2,noise=seeded", {"clients": "12"}),
        (FedEASE(), "distributed:epsilon=50,noise=seeded", {}),
    ],
)
def test_masks_change_no_sum(method: Federated, privacy: str, options: dict[str, Any]) -> None:
    real, without = (_after(method, f"{privacy}{more}", **options) for more in ("", ",masks=skipped"))
    for name, value in real.server.shared.items():
        assert torch.equal(value, without.server.shared[name]), name


def test_masked_sums_are_those_of_everybody_to_a_step() -> None:
    masked, plain = _after(FEDMF, SUMS, 1), _after(FEDMF, "none", 1, weighting="uniform")
    assert masked.terms.masked is not None
    step = 1 / masked.terms.masked.coding(1, None).scale
    apart = masked.server.shared["items"] - plain.server.shared["items"]
    assert 0 < float(apart.abs().max()) <= step
    assert not masked.terms.codec.tells_samples


def test_masked_sums_of_what_clients_report() -> None:
    """Popularity-like counts: a clip that nobody reaches leaves the closed form what it is."""
    masked, plain = _after(FedEASE(), "masked:clip=1000", 1), _after(FedEASE(), "none", 1)
    for name, value in plain.server.shared.items():
        assert torch.allclose(masked.server.shared[name], value, atol=1e-3), name


@pytest.mark.parametrize("method", [FEDMF, FedEASE()], ids=["fedmf", "fedease"])
def test_clients_alone_equal_a_simulation(method: Federated) -> None:
    alone_equals_vector(method, FederationOptions(privacy="masked:clip=5"))


def _round() -> tuple[Exchange, dict[int, OwnMasks], dict[int, bytes], MeanPartial, Tensor]:
    masked = Masked(Layout((Part("whole", (40,)),)), CLIP, 10, 8, Masks())
    words = torch.randint(MODULUS, (10, 40), generator=torch.Generator().manual_seed(0))
    total = MeanPartial({"whole": torch.zeros(40)}, torch.empty(0), "uniform")
    total.words = torch.zeros(40, dtype=torch.long)
    exchange = Exchange(masked.cohort, 1, 0)
    own = {one: OwnMasks(one, masked.cohort) for one in range(10)}
    introductions = exchange.introduce(one.keys(1) for one in own.values())
    return exchange, own, exchange.deliver(own[one].shares(data) for one, data in introductions.items()), total, words


def _words(clients: Tensor, words: Tensor) -> Upload:
    nothing = clients.new_zeros(len(clients), 0)
    return Upload(clients, torch.zeros_like(clients), nothing, nothing.bool(), words=words)


@pytest.mark.parametrize("arriving", [10, 8, 7])
def test_who_drops_out_leaves_the_sum_of_the_others_or_none(arriving: int) -> None:
    exchange, own, inboxes, total, words = _round()
    for client in range(arriving):
        sent = own[client].put_on(_words(torch.tensor([client]), words[client : client + 1]), inboxes[client])
        exchange.take(sent)
        assert sent.words is not None
        assert not bool((sent.words == words[client]).any())
        total.add(sent)
    if arriving < 8:
        before = total.words.clone() if total.words is not None else torch.zeros(0)
        with pytest.raises(TrainingError, match="7 clients sent masked numbers, and 8 are needed; nothing is released"):
            exchange.left()
        assert total.words is not None
        assert torch.equal(total.words, before), "what is left is masked"
        return
    exchange.lift(total, [own[one].show(data) for one, data in exchange.left().items()])
    assert total.words is not None
    assert torch.equal(total.words, words[:arriving].sum(0) % MODULUS)


def test_a_round_with_fewer_clients_than_the_threshold_trains_nobody() -> None:
    one = federation(FEDMF, small_world(), options=FederationOptions(privacy="masked:clip=1", clients="20"))
    before = {name: value.clone() for name, value in one.server.shared.items()}
    one.fleet.choose = lambda server, number: torch.arange(9)  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="round 1: 9 clients take part, and 16 are needed; nothing is released"):
        one.round(1)
    assert all(torch.equal(value, before[name]) for name, value in one.server.shared.items())


def test_uploads_of_words_are_written_as_four_bytes_each_and_read_back() -> None:
    codec = federation(FEDMF, small_world(), options=FederationOptions(privacy=SUMS)).terms.codec
    words = torch.randint(MODULUS, (1, codec.words), generator=torch.Generator().manual_seed(0))
    message = codec.write_upload(_words(torch.tensor([3]), words), 1)
    assert len(message) == int(codec.upload_sizes(_words(torch.tensor([3]), words))[0])
    assert 0 <= len(message) - 4 * codec.words < 64
    read = codec.read_upload(message, 3)
    assert read.words is not None
    assert torch.equal(read.words, words)
    plain = federation(FEDMF, small_world()).terms.codec
    with pytest.raises(MessageError):
        plain.read_upload(message, 3)
    wrong = wire.Message(wire.UPLOAD, 1, 0, {"items": wire.Words(torch.zeros(60, 3, dtype=torch.long))}).pack()
    for reading in (plain, codec):
        with pytest.raises(MessageError):
            reading.read_upload(wrong, 3)


def test_partial_sums_of_words_merge() -> None:
    *_, first, words = _round()
    *_, second, _ = _round()
    first.add(_words(torch.arange(6), words[:6]))
    second.add(_words(torch.arange(6, 10), words[6:]))
    first.merge(second.pack())
    assert first.words is not None
    assert torch.equal(first.words, words.sum(0) % MODULUS)
    assert float(first.weight) == 10


def test_methods_whose_server_needs_every_upload_are_refused() -> None:
    refused = [name for name, cls in METHODS.items() if cls().server(ANY_WORLD).needs == EACH]
    assert len(refused) >= 4
    for name in refused:
        with pytest.raises(SettingError, match="its server needs every single upload, and only sums"):
            federation(METHODS[name](), small_world(), options=FederationOptions(privacy="masked:clip=1"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"privacy": "masked"}, "clip is missing"),
        ({"privacy": "masked:clip=0"}, "clip 0: sums of whole numbers need a bound"),
        ({"privacy": "masked:clip=1,treshold=3"}, "did you mean 'threshold'"),
        ({"privacy": "masked:clip=1,threshold=x"}, "threshold 'x' is no whole number above 0"),
        ({"privacy": "masked:clip=1,masks=off"}, "choose from real, signed, skipped"),
        ({"privacy": "masked:clip=1,clip=2"}, "given twice"),
        ({"privacy": "masked:clip=1,threshold=50"}, "threshold 50, and a round has 23 clients: from 12 to 23"),
        ({"privacy": "masked:clip=1,threshold=3"}, "from 12 to 23"),
        ({"privacy": "masked:clip=1,neighbours=7"}, "neighbours=7: in a round of 23 clients, of which"),
        ({"privacy": "masked:clip=1,neighbours=2"}, "expected no neighbours"),
        ({"privacy": "masked:clip=1", "clients": "2"}, "a round has 2 clients, too few"),
        ({"privacy": "masked:clip=1", "clients": "poisson:0.5"}, "expected all, a share or a number"),
        ({"privacy": "masked:clip=1", "clients": "turns:5"}, "expected all, a share or a number"),
        ({"privacy": "masked:clip=1", "weighting": "samples"}, "would leave in clear"),
        ({"privacy": "masked:clip=1", "row_mean": "touched"}, "tells its items"),
        ({"privacy": "distributed:epsilon=8,rounds=1,threshold=50"}, "from 12 to 23"),
        ({"privacy": "central:epsilon=8,rounds=1,threshold=20"}, "'threshold' is no part of a central budget"),
        ({"privacy": "maskd:clip=1"}, "did you mean 'masked'"),
    ],
)
def test_what_cannot_be_masked_is_refused_in_a_line(options: dict[str, str], match: str) -> None:
    with pytest.raises(SettingError, match=match) as error:
        federation(FEDMF, small_world(), options=FederationOptions(**options))  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_settings_are_written_as_they_are_read() -> None:
    for text in ("masked:clip=0.5,threshold=7,neighbours=4,masks=skipped", "masked:clip=3"):
        assert str(masked_sums(text)) == text
    assert masked_sums("none") is None
    assert masked_sums("masked:clip=1,masks=real") == MaskedSums(1.0, Masks())


def test_without_the_package_masks_are_refused_and_sums_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    primitives._package.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.x25519", None)
    with pytest.raises(SettingError, match=r'cryptography, which is not installed: pip install -e "\.\[privacy\]"'):
        federation(FEDMF, small_world(), options=FederationOptions(privacy=SUMS))
    _after(FEDMF, f"{SUMS},masks=skipped", 1)


def test_noise_too_fine_for_whole_steps_is_refused() -> None:
    fine = replace(_shared(), noise=(1e-8,))
    with pytest.raises(SettingError, match="expected at least 4"):
        Masked(LAYOUT, CLIP, 5, 4, Masks(), fine).require_possible()


def test_patches_of_a_symmetric_matrix_are_laid_out_as_if_they_were_written_out() -> None:
    """A patch is never written out, and gives the same vector, padding included."""
    draw = torch.Generator().manual_seed(5)
    rows = torch.tensor([[4, 0, 2], [1, 3, 0]])
    values = torch.rand(2, 3, 3, generator=draw)
    values = values + values.mT
    values[1, 2], values[1, :, 2] = 0, 0  # padding names row 0
    upload = Upload(
        torch.arange(2), torch.zeros(2), torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool),
        sums={"pairs": Patch(rows, rows, values)}, shapes={"pairs": (5, 5)},
    )  # fmt: skip
    layout = Layout((Part("pairs", (5, 5), True, True),))
    written = replace(upload, sums=upload.written_out())
    assert torch.equal(layout.flat(upload), layout.flat(written))
    assert layout.flat(upload).count_nonzero(1).tolist() == [6, 3]
