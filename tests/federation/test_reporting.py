"""Methods whose clients report sums: noise, memory, options they cannot heed, bytes and cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import (
    FCF,
    Arrived,
    FedCIA,
    FedEASE,
    FederationOptions,
    FedIALS,
    Param,
    Params,
    Product,
    Reporting,
    ReportingMethod,
    Summand,
    Summands,
    World,
    history,
    received,
)
from ownview.base.errors import DeviceError, SettingError, TrainingError
from ownview.base.randomness import derive
from ownview.engine.machine import Machine
from ownview.federation.reporting import _speaking
from ownview.messages.sums import SumPartial
from ownview.messages.upload import Upload
from ownview.messages.wire import dense_size, message_size
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.transforms import Noise, Sending, laplace, transforms
from ownview.registry import METHODS
from ownview.round.cost import cost_of, declared_by
from ownview.round.federation import Federation
from ownview.seam.training import Batch, Context
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import federation as golden_federation

LINE = {"seconds": {"server": 0.5}}
REPORTERS = {name: cls for name, cls in METHODS.items() if issubclass(cls, ReportingMethod)}


def _summands(sums: dict[str, Tensor | Product], count: int) -> Upload:
    nothing = torch.zeros(count, 0, dtype=torch.long)
    return Upload(torch.arange(count), torch.ones(count, dtype=torch.long), nothing, nothing.bool(), sums=sums)


def test_there_are_methods_that_report() -> None:
    assert set(REPORTERS) == {"fcf", "fedcia", "fedease", "fedials", "fedsasrec"}


def test_a_sum_of_products_is_the_sum_of_written_out_products() -> None:
    random = torch.Generator().manual_seed(0)
    left, right = (torch.randn(5, 3, n, generator=random, dtype=torch.float64) for n in (4, 6))
    declared = {"x": Summand((4, 2, 3), "x"), "y": Summand((4,), "y")}
    total = SumPartial(declared, torch.empty(0, dtype=torch.float64))
    for block in (torch.arange(2), torch.arange(2, 5)):
        total.add(_summands({"x": Product(left[block], right[block]), "y": left[block, 0]}, len(block)))
    written = sum(left[k].T @ right[k] for k in range(5))
    assert isinstance(written, torch.Tensor)
    assert torch.allclose(total.sums["x"], written.reshape(4, 2, 3))
    assert torch.allclose(total.sums["y"], left[:, 0].sum(0))


@pytest.mark.parametrize("size", [1, 256, 700])
def test_a_symmetric_sum_is_made_of_one_half(size: int) -> None:
    random = torch.Generator().manual_seed(size)
    sides = torch.randn(3, 2, size, generator=random, dtype=torch.float64)
    weights = torch.rand(3, 1, 1, generator=random, dtype=torch.float64)
    total = SumPartial({"x": Summand((size, size), "x", symmetric=True)}, torch.empty(0, dtype=torch.float64))
    for block in (torch.arange(1), torch.arange(1, 3)):
        total.add(_summands({"x": Product((sides * weights)[block], sides[block])}, len(block)))
    assert torch.allclose(total.sums["x"], ((sides * weights).mT @ sides).sum(0), rtol=1e-12, atol=1e-12)


def test_all_summands_of_a_client_are_clipped_together() -> None:
    chosen = transforms("gaussian:clip=2,noise=1e-9")
    assert chosen is not None
    sending = Sending(7, torch.ones(1), 4, noise=NoiseKey.from_seed(7))
    large = _summands(
        {"a": torch.tensor([[6.0, 0.0]]), "b": Product(torch.tensor([[[4.0]]]), torch.tensor([[[2.0]]]))}, 1
    )
    out = chosen.on_client(large, sending).sums
    assert isinstance(out["a"], Tensor)
    assert isinstance(out["b"], Tensor)
    assert out["a"].tolist() == [pytest.approx([1.2, 0.0], abs=1e-6)]
    assert out["b"].tolist() == [[pytest.approx([1.6], abs=1e-6)]]
    small = chosen.on_client(_summands({"a": torch.tensor([[0.3, 0.4]])}, 1), sending).sums["a"]
    assert isinstance(small, Tensor)
    assert small.tolist() == [pytest.approx([0.3, 0.4], abs=1e-6)]


# --- what is drawn anew in every round ---


@dataclass(frozen=True)
class Tally(ReportingMethod):
    """Every client sends a one for every item, and how often it drew each as a negative; the server keeps both sums."""

    name: ClassVar[str] = "tally"
    title: ClassVar[str] = "Tally"
    summary: ClassVar[str] = "counts"

    def params(self, world: World) -> dict[str, Param]:
        return {"seen": history(), "ones": received(world.num_items), "drawn": received(world.num_items)}

    def sends(self, world: World) -> dict[str, Summand]:
        return {name: Summand((world.num_items,), name) for name in ("ones", "drawn")}

    def reporting(self, world: World) -> Reporting:
        return replace(super().reporting(world), negatives=2, receives_after=True)

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        return {"ones": torch.ones_like(p["seen"]), "drawn": batch.counts - batch.positives}, {}

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        return dict(sums)

    def scores(self, p: Params) -> Tensor:
        return p["ones"]


class Mistyped(Tally):
    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        return {"onse": sums["ones"]}


def test_a_server_combines_into_what_it_has() -> None:
    with pytest.raises(TrainingError, match=r"tally: combine makes 'onse', no value .*; did you mean 'ones'\?"):
        federation(Mistyped(), small_world()).round(1)


class Unpaired(Tally):
    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        found: Any = super().report(p, batch, context)[0]
        return found  # type: ignore[no-any-return]


def test_a_report_says_what_is_sent_and_what_is_kept() -> None:
    with pytest.raises(SettingError, match="tally: report returned no pair; expected what is sent, what is kept"):
        federation(Unpaired(), small_world()).round(1)


def _tallies(name: str, **options: object) -> list[Tensor]:
    one = federation(Tally(), small_world(), options=FederationOptions.of(options))
    found = []
    for number in (1, 2, 3):
        one.round(number)
        found.append(one.server.shared[name].clone())
    return found


def test_noise_on_sums_is_drawn_anew_every_round() -> None:
    exact = _tallies("ones")
    assert torch.equal(exact[0], torch.full_like(exact[0], 23.0))
    noise = torch.stack(_tallies("ones", privacy="laplace:0.5")) - 23
    assert float(noise.abs().min()) > 0
    assert len(torch.unique(noise)) == noise.numel(), "a number was drawn twice"
    between = torch.corrcoef(noise) - torch.eye(3, dtype=torch.float64)
    assert float(between.abs().max()) < 5 / math.sqrt(noise.shape[1])


def test_negatives_of_reporters_are_drawn_anew_every_round() -> None:
    drawn = _tallies("drawn")
    assert all(float(one.sum()) == 2 * int(small_world().train.lengths.sum()) for one in drawn)
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


def test_samples_of_reporters_follow_the_rules() -> None:
    """Every positive is followed by its negatives, which are none of the client's items; all of them know it."""
    split = small_world()
    one = federation(Tally(), split)
    batch = one.work.samples(1, torch.arange(split.num_users)).batch
    for client in range(split.num_users):
        real = batch.mask[client] > 0
        rows, labels, partners = (part[client][real] for part in (batch.rows, batch.labels, batch.partners))
        positives = split.train.of(client).tolist()
        assert rows[labels == 1].tolist() == positives
        negatives = rows[labels == 0].reshape(-1, 2)
        assert all(len(set(pair)) == 2 for pair in negatives.tolist())
        assert not set(negatives.flatten().tolist()) & set(positives)
        assert partners.reshape(-1, 3).tolist() == [[item] * 3 for item in positives]
        counted = torch.bincount(rows, minlength=split.num_items)
        assert batch.counts[client].tolist() == counted.tolist()
        assert batch.positives[client].nonzero()[:, 0].tolist() == sorted(positives)


# --- noise ---


def test_noise_reaches_the_server_and_makes_every_upload_whole() -> None:
    plain = golden_federation(FedEASE(), "vector")
    noisy = golden_federation(FedEASE(), "vector", privacy="laplace:0.1")
    half = 12 + 4 * (1 + 2) + 3 * 8  # a header, which two rows, and the values on and above their diagonal
    assert plain.round(1).bytes_up == message_size({"pairs": half})
    report = noisy.round(1)
    assert report.bytes_dense == dense_size((4, 4), 8) == 12 + 16 * 8
    assert report.bytes_up == message_size({"pairs": report.bytes_dense})
    key = derive(derive(3, "privacy", 1), "pairs")
    added = Noise(0.1, laplace).noisy(torch.zeros(2, 4, 4, dtype=torch.float64), key, torch.arange(2)).sum(0)
    apart = noisy.server.held["gram"] - plain.server.held["gram"]
    assert apart.numpy() == pytest.approx(((added + added.T) / 2).numpy(), abs=1e-12)


def test_who_has_told_everything_sends_no_noise() -> None:
    one = golden_federation(FedEASE(), "vector", privacy="laplace:0.1")
    one.round(1)
    before = one.server.held["gram"].clone()
    assert one.round(2).bytes_up == 0
    assert torch.equal(one.server.held["gram"], before)


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server_optimizer", "adam"),
        ("weighting", "samples"),
        ("row_mean", "touched"),
        ("receiving", 0.5),
        ("server_learning_rate", 2.0),
        ("server_momentum", 0.5),
    ],
)
def test_options_about_means_of_tables_are_refused(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"federation setting {name}=.*adds up what clients send.*expected"):
        golden_federation(FCF(), "vector", **{name: value})


@pytest.mark.parametrize(
    ("method", "advice"), [(FedEASE(), "fewer items"), (FedCIA(), "items by items"), (FCF(), "lower")]
)
def test_data_that_does_not_fit_is_refused(method: ReportingMethod, advice: str) -> None:
    split = small_world()
    place = Machine(torch.device("cpu"), memory=10_000)
    with pytest.raises(DeviceError, match=f"{method.name}'s standing values need .* allows 10 kB; .*{advice}"):
        Federation(method, split, split.training_items(), FederationOptions(), 0, place)


def test_blocks_hold_what_memory_allows() -> None:
    split = small_world()
    place = Machine(torch.device("cpu"), memory=1_100_000)
    one = Federation(FedIALS(), split, split.training_items(), FederationOptions(), 0, place)
    widths = [len(block) for block in one.work.blocks(torch.arange(split.num_users))]
    assert sum(widths) == split.num_users
    working = FedIALS().reporting(one.world).working
    assert isinstance(working, int)
    assert max(widths) * working * 4 <= place.block_bytes
    assert len(widths) > 1


def test_a_method_that_diverges_says_so() -> None:
    one = federation(FedCIA(fit_rate=1e30, noise=0.0), small_world(), dtype=torch.float32)
    with pytest.raises(TrainingError, match="fedcia diverged in round 1: items is not finite"):
        one.round(1)


def test_who_sends_anything_at_all_is_told_by_all_of_its_summands() -> None:
    small, large = torch.tensor([[1.0], [0.0], [0.0]]), torch.zeros(3, 5)
    large[1, 3] = -2.0
    speaking = _speaking(_summands({"large": large, "small": small}, 3))
    assert speaking.clients.tolist() == [0, 1]
    assert len(_speaking(_summands({"large": large, "small": small.fill_(1.0)}, 3)).clients) == 3


def test_nobody_takes_part() -> None:
    one = federation(FedIALS(), small_world(), options=FederationOptions(clients="poisson:1e-12"))
    before = one.server.shared["items"].clone()
    report = one.round(1)
    assert (report.clients, report.bytes_up) == (0, 0)
    assert torch.equal(one.server.shared["items"], before)


# --- cost ---


@pytest.mark.parametrize("name", REPORTERS)
def test_cost_is_what_is_declared_and_held(name: str) -> None:
    one = federation(REPORTERS[name](), small_world(), dtype=torch.float32)
    report = one.round(1)
    cost = cost_of(one, 1, [LINE])
    assert cost.declared["bytes_up_per_client"] == report.bytes_up
    weighed = {**LINE, "round": 1, "clients": report.clients, "bytes_up_per_client": report.bytes_up}
    assert cost_of(one, 1, [weighed]).declared == cost.declared
    headers = sum(4 + 4 * value.dim() for value in one.server.shared.values())
    assert cost.declared["bytes_down_per_client"] + headers == report.bytes_dense
    assert 0 < report.bytes_down <= message_size(dict.fromkeys(one.server.shared, 0)) + report.bytes_dense
    assert cost.measured["client_bytes"] == cost.declared["client_bytes"]
    assert cost.measured["server_bytes"] == cost.declared["server_bytes"]
    assert min(cost.measured["seconds"]["client"]) > 0


def test_bytes_by_hand() -> None:
    split = small_world()
    m, k = split.num_items, split.train.lengths.numpy()
    ease = declared_by(federation(FedEASE(), split, dtype=torch.float32))
    by_half = 12 + 4 * (1 + k) + 4 * k * (k + 1) // 2  # a header, which rows, values on and above the diagonal
    whole = 12 + 4 * m * m
    assert ease["bytes_up_per_client"] == round(np.mean(16 + 1 + len("pairs") + np.minimum(by_half, whole)))
    assert ease["bytes_down_per_client"] == 4 * m**2
    cia = declared_by(federation(FedCIA(), split, dtype=torch.float32))
    assert cia["bytes_up_per_client"] == 16 + 1 + len("similarities") + whole
    assert cia["bytes_down_per_client"] == 4 * m**2
    assert cia["client_bytes"] == 4 * (m**2 + 16 * (m + 1))
