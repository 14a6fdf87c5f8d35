"""The engine of methods whose clients send sums: noise, memory, options it cannot heed, bytes and cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ownview import FCF, FedCIA, FedEASE, FederationOptions, FedIALS, Gathering
from ownview.base.errors import DeviceError, SettingError, TrainingError
from ownview.base.randomness import derive
from ownview.engine.machine import Machine
from ownview.federation.gathering import GatheringFederation
from ownview.federation.gathering_cost import declared_cost, gathering_cost
from ownview.federation.privacy import privacy
from ownview.federation.sums import Gate, Sums
from ownview.registry import GATHERINGS
from ownview.seam.gathering import Product, Summand
from ownview.testing import gathering, small_world
from tests.engine.golden import gathering_federation

LINE = {"seconds": {"server": 0.5}}


def test_a_sum_of_products_is_the_sum_of_written_out_products() -> None:
    random = torch.Generator().manual_seed(0)
    left, right = (torch.randn(5, 3, n, generator=random, dtype=torch.float64) for n in (4, 6))
    declared = {"x": Summand((4, 2, 3), "x"), "y": Summand((4,), "y")}
    sums = Sums(declared, Gate(None, 0), torch.empty(0, dtype=torch.float64))
    for block in (torch.arange(2), torch.arange(2, 5)):
        sums.add(block, {"x": Product(left[block], right[block]), "y": left[block, 0]})
    written = sum(left[k].T @ right[k] for k in range(5))
    assert isinstance(written, torch.Tensor)
    assert torch.allclose(sums.values["x"], written.reshape(4, 2, 3))
    assert torch.allclose(sums.values["y"], left[:, 0].sum(0))


def test_the_gate_clips_all_summands_of_a_client_together() -> None:
    chosen = privacy("gaussian:clip=2,noise=1e-9")
    out = Gate(chosen, 7).let_out(torch.tensor(0), {"a": torch.tensor([6.0, 0.0]), "b": torch.tensor([[8.0]])})
    assert out["a"].tolist() == pytest.approx([1.2, 0.0], abs=1e-6)
    assert out["b"].tolist() == [pytest.approx([1.6], abs=1e-6)]
    small = Gate(chosen, 7).let_out(torch.tensor(0), {"a": torch.tensor([0.3, 0.4])})
    assert small["a"].tolist() == pytest.approx([0.3, 0.4], abs=1e-6)


def test_noise_reaches_the_server_and_makes_every_upload_whole() -> None:
    plain = gathering_federation(FedEASE(), "vector")
    noisy = gathering_federation(FedEASE(), "vector", privacy="laplace:0.1")
    assert plain.round(1).bytes_up == 3 * 8
    report = noisy.round(1)
    assert report.bytes_up == report.bytes_dense == 16 * 8
    key = derive(derive(3, "privacy", 1), "pairs")
    chosen = privacy("laplace:0.1")
    assert chosen is not None
    added = chosen.noisy(torch.zeros(2, 4, 4, dtype=torch.float64), key, torch.arange(2)).sum(0)
    apart = noisy.server["gram"] - plain.server["gram"]
    assert apart.numpy() == pytest.approx(((added + added.T) / 2).numpy(), abs=1e-12)


def test_who_has_told_everything_sends_no_noise() -> None:
    one = gathering_federation(FedEASE(), "vector", privacy="laplace:0.1")
    one.round(1)
    before = one.server["gram"].clone()
    assert one.round(2).bytes_up == 0
    assert torch.equal(one.server["gram"], before)


@pytest.mark.parametrize(
    ("name", "value"),
    [("server_optimizer", "adam"), ("weighting", "samples"), ("receiving", 0.5), ("server_learning_rate", 2.0)],
)
def test_options_about_means_of_tables_are_refused(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"federation setting {name}=.*adds up what clients send.*expected"):
        gathering_federation(FCF(), "vector", **{name: value})


@pytest.mark.parametrize(
    ("method", "advice"), [(FedEASE(), "fewer items"), (FedCIA(), "items by items"), (FCF(), "lower")]
)
def test_data_that_does_not_fit_is_refused(method: Gathering, advice: str) -> None:
    split = small_world()
    place = Machine(torch.device("cpu"), memory=10_000)
    with pytest.raises(DeviceError, match=f"{method.name}'s standing values need .* allows 10 kB; .*{advice}"):
        GatheringFederation(method, split, split.training_items(), FederationOptions(), 0, place)


def test_blocks_hold_what_memory_allows() -> None:
    split = small_world()
    place = Machine(torch.device("cpu"), memory=1_100_000)
    one = GatheringFederation(FedIALS(), split, split.training_items(), FederationOptions(), 0, place)
    widths = [len(block) for block in one.blocks(torch.arange(split.num_users))]
    assert sum(widths) == split.num_users
    assert max(widths) * FedIALS().working(one.world) * 4 <= place.block_bytes
    assert len(widths) > 1


def test_a_method_that_diverges_says_so() -> None:
    one = gathering(FedCIA(fit_rate=1e30, noise=0.0), small_world(), dtype=torch.float32)
    one.round(1)
    with pytest.raises(TrainingError, match="fedcia diverged in round 2"):
        one.round(2)


def test_nobody_takes_part() -> None:
    one = gathering(FedIALS(), small_world(), options=FederationOptions(clients="poisson:1e-12"))
    before = one.server["items"].clone()
    report = one.round(1)
    assert (report.clients, report.bytes_up) == (0, 0)
    assert torch.equal(one.server["items"], before)


@pytest.mark.parametrize("name", GATHERINGS)
def test_cost_is_what_is_declared_and_held(name: str) -> None:
    split = small_world()
    one = gathering(GATHERINGS[name](), split, dtype=torch.float32)
    report = one.round(1)
    cost = gathering_cost(one, 1, [LINE])
    assert cost.declared.bytes_up == report.bytes_up
    assert cost.declared.bytes_down == report.bytes_down
    assert cost.measured.client_bytes == cost.declared.client_bytes
    assert cost.measured.server_bytes == cost.declared.server_bytes
    assert min(cost.measured.client_seconds) > 0


def test_bytes_by_hand() -> None:
    split = small_world()
    k = split.train.lengths.numpy()
    ease = declared_cost(gathering(FedEASE(), split, dtype=torch.float32))
    assert ease.bytes_up == round(4 * np.mean(k * (k + 1) / 2))
    assert ease.bytes_down == 4 * split.num_items**2
    cia = declared_cost(gathering(FedCIA(), split, dtype=torch.float32))
    assert cia.bytes_up == cia.bytes_down == 4 * split.num_items**2
    assert cia.client_bytes == 4 * (split.num_items**2 + 16 * (split.num_items + 1))
