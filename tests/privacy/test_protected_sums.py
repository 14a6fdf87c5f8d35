"""What leaves clients under a budget: bounded, noised once, by the right amount, and never twice the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ownview import FedEASE, Federated, FederationOptions, FedIALS, FedMF, FedNext
from ownview.base.errors import TrainingError
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.upload import Upload
from ownview.privacy.protected import Protected
from ownview.privacy.transforms import Sending, Summing
from ownview.privacy.whole_steps import BOUND
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.client import Patch, Product, Sent, Summand
from ownview.seam.protection import Protection
from ownview.testing.federated import alone_equals_vector, assert_close
from ownview.testing.worlds import federation, small_world

CLIP = 0.7
PLAN = Protection("central", 8.0, 1e-5, CLIP, False, (2.0, 2.0), 5.0, "", "")
FEDMF = FedMF(embedding_size=3, local_epochs=2)
MODES = {
    "central": "central:epsilon=8,clip=0.2,rounds=3",
    "adaptive": "central:epsilon=8,rounds=3",
    "local": "local:epsilon=8,clip=0.2,rounds=3",
    "distributed": "distributed:epsilon=8,rounds=3",
}


def _uploads(scale: float, seed: int, dtype: torch.dtype = torch.float32) -> Upload:
    """Of three clients, with everything that an upload may hold."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return scale * torch.randn(3, *shape, generator=random, dtype=dtype)

    items = torch.stack([torch.randperm(9, generator=random)[:4] for _ in range(3)])
    touched = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    sums: dict[str, Sent] = {
        "p": Product(drawn(2, 4), drawn(2, 4)),
        "c": Patch(items, items, drawn(4, 4)),
        "t": drawn(6),
    }
    return Upload(
        torch.arange(3), torch.tensor([1, 50, 3]), items, touched, {"rows": drawn(4, 2)}, {"whole": drawn(5)}, sums,
        {"p": (4, 4), "c": (9, 9), "t": (6,)},
    )  # fmt: skip


def _sending(number: int = 1, bound: Tensor | None = None) -> Sending:
    return Sending(11, torch.ones(3), 9, number, bound)


@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 2**31), double=st.booleans())
def test_nobody_adds_more_than_the_clip(scale: float, seed: int, double: bool) -> None:
    before = _uploads(scale, seed, torch.float64 if double else torch.float32)
    after = Protected(PLAN).on_client(before, _sending())
    numbers = [after.spread(9).whole, after.written_out()]
    squares = sum(one.double().flatten(1).square().sum(1) for part in numbers for one in part.values())
    assert isinstance(squares, Tensor)
    assert bool((squares.sqrt() <= CLIP * (1 + 1e-6)).all())
    small = before.norms() <= CLIP
    for name, value in before.whole.items():
        assert torch.equal(after.whole[name][small], value[small]), "who is within the clip sends what it learnt"


def test_norms_of_what_is_not_written_out_are_those_of_what_is() -> None:
    upload = _uploads(1.0, 3, torch.float64)
    for name, value in upload.written_out().items():
        alone = replace(upload, rows={}, whole={}, sums={name: upload.sums[name]})
        assert torch.allclose(alone.norms(), value.flatten(1).norm(dim=1), rtol=1e-12)


def _sums(noise: Protected, number: int) -> dict[str, Tensor]:
    """What is left of sums of zeros: a large table, a vector and a symmetric matrix."""
    like = torch.empty(0, dtype=torch.float64)
    declared = {"t": Summand((200, 300), "t"), "s": Summand((300, 300), "s", symmetric=True)}
    total = SumPartial(declared, like, noise.counted(number, None))
    noise.on_server(total, Summing(number))
    return total.sums


def test_noise_on_sums_has_the_standard_deviation_it_should() -> None:
    sums = _sums(Protected(PLAN, frozenset({"s"})), 1)
    wanted = 2.0 * CLIP
    assert float(sums["t"].std()) == pytest.approx(wanted, rel=0.02)
    assert torch.equal(sums["s"], sums["s"].T)
    above = sums["s"][tuple(torch.triu_indices(300, 300, 1))]
    assert float(above.std()) == pytest.approx(wanted / math.sqrt(2), rel=0.02)
    many = torch.cat([_sums(Protected(PLAN, frozenset({"s"})), 1)["s"].diagonal() for _ in range(20)])
    assert float(many.std()) == pytest.approx(wanted, rel=0.03)  # 6,000 numbers: 0.9 % is one standard error


def test_noise_of_devices_has_the_standard_deviation_it_should() -> None:
    nothing = _uploads(0.0, 0)
    wide = replace(nothing, rows={}, whole={"whole": torch.zeros(3, 20_000)}, sums={})
    sent = Protected(replace(PLAN, mode="local")).on_client(wide, _sending()).whole["whole"]
    assert float(sent.std()) == pytest.approx(2.0 * CLIP, rel=0.02)
    assert not torch.equal(sent[0], sent[1]), "every client has noise of its own"


def test_noise_of_two_rounds_differs() -> None:
    first, second = (_sums(Protected(PLAN, frozenset({"s"})), number)["s"] for number in (1, 2))
    assert not torch.equal(first, second)
    one = _idle("central:epsilon=8,clip=0.2,rounds=3")
    moves = [_released(one, number) for number in (1, 2)]
    assert float((moves[0] - moves[1]).abs().min()) > 0


def _idle(privacy: str) -> Federation:
    return federation(FEDMF, small_world(), options=FederationOptions(privacy=privacy))


def _released(one: Federation, number: int) -> Tensor:
    """What the server releases of a round that nobody took part in."""
    before = one.server.shared["items"].clone()
    one.server.finish(number, one.server.begin(number), torch.zeros(0, dtype=torch.long))
    return one.server.shared["items"] - before


def test_a_round_that_nobody_takes_part_in_releases_noise_all_the_same() -> None:
    one = _idle("central:epsilon=8,clip=0.2,rounds=3")
    plan = one.world.protection
    assert plan is not None
    wanted = plan.noise[0] * 0.2 / plan.clients
    assert float(_released(one, 1).std()) == pytest.approx(wanted, rel=0.25)  # 180 numbers


def test_sums_are_divided_by_a_fixed_number_whoever_comes() -> None:
    partial = MeanPartial({"whole": torch.zeros(5)}, torch.empty(0), "uniform", divisor=7.0)
    upload = replace(_uploads(1.0, 0), rows={}, sums={})
    partial.add(upload)
    assert torch.allclose(partial.mean()["whole"], upload.whole["whole"].sum(0) / 7)


def test_an_adaptive_clip_moves_towards_the_median() -> None:
    plan = replace(PLAN, adaptive=True, noise=(1e-9,))
    inside = Protected(plan).on_client(_uploads(1e-3, 0), _sending(bound=torch.tensor(CLIP))).whole[BOUND]
    outside = Protected(plan).on_client(_uploads(1e3, 0), _sending(bound=torch.tensor(CLIP))).whole[BOUND]
    assert inside.tolist() == [0.5] * 3
    assert outside.tolist() == [-0.5] * 3
    one = federation(FEDMF, small_world(), options=FederationOptions(privacy="central:epsilon=1e6,rounds=3"))
    before = float(one.server.shared[BOUND])
    one.round(1)
    assert float(one.server.shared[BOUND]) > 1.05 * before, "all norms are above 0.1, and noise is small"


def test_the_number_of_samples_stays_at_home_and_the_budget_ends() -> None:
    one = federation(FEDMF, small_world(), options=FederationOptions(privacy="central:epsilon=8,clip=1,rounds=1"))
    assert one.terms.weighting == "uniform"
    assert not one.terms.codec.tells_samples
    one.round(1)
    with pytest.raises(TrainingError, match="the budget is for 1 rounds"):
        one.round(2)


def _trained(method: Federated, privacy: str, engine: str) -> Mapping[str, Tensor]:
    options = FederationOptions(privacy=privacy).repeating()
    one = federation(method, small_world(num_users=9), options=options, engine=engine)
    for number in range(1, 1 + (len(method.releases) or 2)):
        one.round(number)
    found = {name: value for name, value in one.server.pack().items() if value.is_floating_point()}
    return {**found, "scores": scorer_of(one).scores(torch.arange(9), None)}


@pytest.mark.parametrize("mode", MODES)
def test_loop_equals_vector(mode: str) -> None:
    assert_close(_trained(FEDMF, MODES[mode], "loop"), _trained(FEDMF, MODES[mode], "vector"), 1e-10)


@pytest.mark.parametrize("mode", ["central", "local", "distributed"])
@pytest.mark.parametrize("method", [FedEASE(), FedNext(rank=4), FedIALS()], ids=["fedease", "fednext", "fedials"])
def test_loop_equals_vector_for_sums(method: Federated, mode: str) -> None:
    own = "" if method.releases else ",clip=1,rounds=2"
    privacy = f"{mode}:epsilon=2000{own}"
    assert_close(_trained(method, privacy, "loop"), _trained(method, privacy, "vector"), 1e-7)


@pytest.mark.parametrize("mode", ["adaptive", "distributed"])
def test_alone_equals_vector(mode: str) -> None:
    alone_equals_vector(FEDMF, FederationOptions(privacy=MODES[mode]))


@pytest.mark.parametrize("mode", ["central", "local", "distributed"])
def test_alone_equals_vector_for_private_sums(mode: str) -> None:
    alone_equals_vector(FedEASE(), FederationOptions(privacy=f"{mode}:epsilon=200"))
