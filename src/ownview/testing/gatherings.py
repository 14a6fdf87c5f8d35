"""The checks of methods whose clients send sums. Each takes one, runs it for real, and raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.metrics import hit_rate
from ownview.evaluation.protocol import HONEST
from ownview.evaluation.ranking import rankers
from ownview.federation.gathering import GatheringFederation
from ownview.federation.options import FederationOptions
from ownview.registry import GATHERINGS
from ownview.runs.experiment import Experiment, describe_model
from ownview.seam.gathering import Gathering
from ownview.testing.worlds import block_world, small_world

GatheringCheck = Callable[[Gathering], None]

_ROUNDS = 3
_HALF = FederationOptions(clients="0.5")
_NOISY = FederationOptions(clients="0.5", privacy="gaussian:clip=1,noise=0.01")


def gathering(
    method: Gathering,
    split: Split,
    *,
    options: FederationOptions | None = None,
    seed: int = 0,
    engine: str = "vector",
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
    block_clients: int = 128,
) -> GatheringFederation:
    """A federation with honest negatives on a small world."""
    place = Machine(torch.device(device), dtype, engine=engine, block_clients=block_clients)
    return GatheringFederation(method, split, split.training_items(), options or FederationOptions(), seed, place)


def loop_equals_vector(method: Gathering, device: str = "cpu") -> None:
    """One client at a time and a block at once give the same values: to 1e-10 in float64, with noise or without."""
    for options in (FederationOptions(), _HALF, _NOISY):
        loop = _trained(gathering(method, small_world(), options=options, engine="loop"))
        _assert_close(loop, _trained(gathering(method, small_world(), options=options, device=device)), 1e-10)


def blocks_change_nothing(method: Gathering) -> None:
    """The size of blocks does not matter."""
    whole = _trained(gathering(method, small_world()))
    for size in (1, 4):
        _assert_close(whole, _trained(gathering(method, small_world(), block_clients=size)), 1e-10)


def only_declared_leaves(method: Gathering) -> None:
    """Where every sum is withheld, so is everything the server ever changes: nothing reaches it by another way."""
    one = gathering(method, small_world())
    before = {name: value.clone() for name, value in one.server.items()}
    one.options = FederationOptions(clients="poisson:1e-12")
    one.round(1)
    for name, value in one.server.items():
        assert torch.equal(value, before[name]), f"the server's {name} changed although nobody sent anything"
    assert set(one.declared) == set(method.summands(one.world))
    assert all(summand.what for summand in one.declared.values()), "a summand does not say what it is"


def resumes_exactly(method: Gathering) -> None:
    """Saved in the middle and restored, it ends bit for bit as if it had never stopped."""
    for options in (FederationOptions(), _HALF, _NOISY):
        whole, first, second = (
            gathering(method, small_world(), options=options, dtype=torch.float32) for _ in range(3)
        )
        _run(whole, 1, 4)
        _run(first, 1, 2)
        second.unpack({name: value.clone() for name, value in first.pack().items()})
        _run(second, 3, 4)
        for name, value in _predictions(whole).items():
            assert torch.equal(value, _predictions(second)[name]), f"{name} differs after a resume"


def repeats_exactly(method: Gathering) -> None:
    """Two runs with one seed agree bit for bit; with half of the clients, another seed gives other values."""
    values = [
        _trained(gathering(method, small_world(), options=_HALF, seed=seed, dtype=torch.float32), 1)["scores"]
        for seed in (0, 0, 1)
    ]
    assert torch.equal(values[0], values[1]), "two runs with the same seed differ"
    assert not torch.equal(values[0], values[2]), "the seed changes nothing"


def experiment_round_trips(method: Gathering) -> None:
    """An experiment with this method survives TOML unchanged, and builds an equal method."""
    name, settings, _ = describe_model(method)
    toml = Experiment(method=name, settings=settings).to_toml()
    assert Experiment.from_toml(toml).to_toml() == toml
    if name in GATHERINGS:
        assert Experiment.from_toml(toml).model() == method


def enough_is_enough(method: Gathering) -> None:
    """Where a method says how many rounds are enough, one more changes nothing."""
    if method.enough is None:
        return
    one = gathering(method, small_world())
    before = _trained(one, method.enough)
    one.round(method.enough + 1)
    _assert_close(before, _predictions(one), 1e-12)


def learns(method: Gathering) -> None:
    """In a world of groups the sums teach users their group's items."""
    split = block_world()
    one = gathering(method, split, dtype=torch.float32)
    _run(one, 1, method.enough or 20)
    _, test = rankers(HONEST, split, seed=0, device=one.machine.device, memory=10**8)
    reached = float(np.mean(hit_rate(test.rank(one), 10)))
    chance = 10 / (split.num_items - 18)
    assert reached > 1.5 * chance, f"HR@10 {reached:.3f} is not above chance {chance:.3f} by half"


GATHERING_CHECKS: Mapping[str, GatheringCheck] = {
    "loop equals vector": loop_equals_vector,
    "blocks change nothing": blocks_change_nothing,
    "only declared leaves": only_declared_leaves,
    "resumes exactly": resumes_exactly,
    "repeats exactly": repeats_exactly,
    "experiment round-trips": experiment_round_trips,
    "enough is enough": enough_is_enough,
    "learns": learns,
}


def _run(one: GatheringFederation, first: int, last: int) -> None:
    for number in range(first, last + 1):
        one.round(number)


def _trained(one: GatheringFederation, rounds: int = _ROUNDS) -> dict[str, Tensor]:
    _run(one, 1, rounds)
    return _predictions(one)


def _predictions(one: GatheringFederation) -> dict[str, Tensor]:
    """Everything that may be compared: scores of all items for all clients, the server's and the clients' values."""
    everybody = torch.arange(one.world.num_clients, device=one.machine.device)
    return {name: value.cpu().clone() for name, value in ({"scores": one.scores(everybody, None)} | one.pack()).items()}


def _assert_close(left: Mapping[str, Tensor], right: Mapping[str, Tensor], tolerance: float) -> None:
    assert set(left) == set(right)
    for name, value in left.items():
        difference = float((value - right[name]).abs().max()) / max(1.0, float(value.abs().max()))
        assert difference <= tolerance, f"{name} differs by {difference:.2e}, more than {tolerance:.0e}"
