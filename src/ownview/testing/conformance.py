"""The checks. Each takes a method (or a plug-in around one), runs it for real, and raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ownview.data.splits import Split
from ownview.evaluation.metrics import hit_rate
from ownview.evaluation.protocol import HONEST
from ownview.evaluation.ranking import rankers
from ownview.federation.options import FederationOptions
from ownview.federation.round import Federation
from ownview.federation.scoring import scorer_of
from ownview.registry import METHODS
from ownview.runs.experiment import Experiment, describe_model
from ownview.seam.gathering import Gathering
from ownview.seam.method import Method, Plugin
from ownview.testing.gatherings import GATHERING_CHECKS
from ownview.testing.worlds import block_world, federation, small_world

Check = Callable[[Method], None]

_ROUNDS = 3
_HALF = FederationOptions(clients="0.5", server_optimizer="adam", server_learning_rate=0.1)


def conform(method: Method | Gathering) -> None:
    """Run every check of the method's family."""
    checks: Mapping[str, Callable[[Any], None]] = GATHERING_CHECKS if isinstance(method, Gathering) else CHECKS
    for name, check in checks.items():
        try:
            check(method)
        except AssertionError as error:
            raise AssertionError(f"{method.name}: {name}: {error}") from error


def loop_equals_vector(method: Method, device: str = "cpu") -> None:
    """One client at a time and all at once give the same values.

    In float64 every value agrees to 1e-10. In float32 values agree to 1e-5 of their scale in root mean square: where
    a gradient cancels to nearly zero, Adam turns the rounding that is left into a step, and single values differ more.
    """
    for options in (FederationOptions(), _HALF):
        loop = _trained(federation(method, small_world(), options=options, engine="loop"))
        _assert_close(loop, _trained(federation(method, small_world(), options=options, device=device)), 1e-10)
    for options in (FederationOptions(), FederationOptions(clients="0.5")):
        alone = federation(method, small_world(), options=options, dtype=torch.float32, engine="loop")
        stacked = federation(method, small_world(), options=options, dtype=torch.float32, device=device)
        loop, vector = _trained(alone, 1), _trained(stacked, 1)
        for name, value in loop.items():
            difference = float((value - vector[name]).square().mean().sqrt()) / _scale(value)
            assert difference <= 1e-5, f"{name} differs by {difference:.2e} in float32, more than 1e-5"


def touched_equals_dense(method: Method) -> None:
    """Giving clients only the rows they touch changes nothing."""
    touched = _trained(federation(method, small_world()))
    dense = _trained(federation(method, small_world(), dense=True))
    _assert_close(touched, dense, 1e-10)


def blocks_change_nothing(method: Method) -> None:
    """Neither the size of blocks nor the order of clients in them matters."""
    whole = _trained(federation(method, small_world()))
    for size in (1, 4):
        _assert_close(whole, _trained(federation(method, small_world(), block_clients=size)), 1e-10)


def only_shared_leaves(method: Method) -> None:
    """The server holds the shared parameters, sees the reported ones, and all others stay with the clients."""
    split = small_world()
    one = federation(method, split)
    declared = {name for name, param in method.params(one.world).items() if param.shared}
    assert set(one.state.shared) == declared, f"the server holds {set(one.state.shared)}, declared are {declared}"
    reported = {name for name, param in method.params(one.world).items() if param.reported}
    assert set(one.state.reported) == reported, f"the server sees {set(one.state.reported)}, declared are {reported}"
    at_clients = {*one.state.own, *one.state.tables, *one.state.starts}
    assert at_clients | declared == set(method.params(one.world))


def resumes_exactly(method: Method) -> None:
    """Saved in the middle and restored, training ends bit for bit as if it had never stopped."""
    split = small_world()
    for options in (FederationOptions(), _HALF):
        whole = federation(method, split, options=options, dtype=torch.float32)
        _run(whole, 1, 4)
        first = federation(method, split, options=options, dtype=torch.float32)
        _run(first, 1, 2)
        saved = {k: v.clone() for k, v in (first.state.pack() | first.server.pack()).items()}
        second = federation(method, split, options=options, dtype=torch.float32)
        second.state.unpack(saved)
        second.server.unpack(saved)
        _run(second, 3, 4)
        for name, value in _predictions(whole).items():
            assert torch.equal(value, _predictions(second)[name]), f"{name} differs after a resume"


def repeats_exactly(method: Method) -> None:
    """Two runs with one seed agree bit for bit; another seed gives other values."""
    values = [
        _trained(federation(method, small_world(), seed=seed, dtype=torch.float32))["scores"] for seed in (0, 0, 1)
    ]
    assert torch.equal(values[0], values[1]), "two runs with the same seed differ"
    assert not torch.equal(values[0], values[2]), "the seed changes nothing"


def experiment_round_trips(method: Method) -> None:
    """An experiment with this method survives TOML unchanged, and builds an equal method."""
    name, settings, plugins = describe_model(method)
    written = Experiment(method=name, settings=settings, plugins=plugins)
    toml = written.to_toml()
    assert Experiment.from_toml(toml).to_toml() == toml
    if name in METHODS:
        assert Experiment.from_toml(toml).model() == method


def neutral_changes_nothing(method: Method) -> None:
    """A plug-in with neutral settings equals its inner method. Nothing to check for a plain method."""
    if not isinstance(method, Plugin):
        return
    inner = method.wrapped
    plain = _trained(federation(inner, small_world()))
    _assert_close(plain, _trained(federation(type(method).neutral(inner), small_world())), 1e-12)


def learns(method: Method) -> None:
    """In a world of groups, what is shared teaches users their group's items; alone they can only fit training.

    Asked only of methods in which what a client receives replaces what it had: one that goes on from its own table may
    fit its training samples so closely that what is shared teaches it nothing, which is no fault of the code. Of that
    one only the loss is asked, and no round more than it needs.
    """
    split = block_world()
    one = federation(method, split, dtype=torch.float32)
    fits_alone = not one.state.shared or any(param.beside for param in one.state.params.values())
    losses = [one.round(1).loss or 0.0]
    for number in range(2, 41):
        losses.append(one.round(number).loss or 0.0)
        if fits_alone and losses[-1] < 0.7 * losses[0]:
            return
    assert losses[-1] < 0.7 * losses[0], f"the training loss went from {losses[0]:.3f} to {losses[-1]:.3f} only"
    reached = _hit_rate(one, split)
    chance = 10 / (split.num_items - 18)
    assert reached > 1.5 * chance, f"HR@10 {reached:.3f} is not above chance {chance:.3f} by half"


CHECKS: Mapping[str, Check] = {
    "loop equals vector": loop_equals_vector,
    "touched equals dense": touched_equals_dense,
    "blocks change nothing": blocks_change_nothing,
    "only shared leaves": only_shared_leaves,
    "resumes exactly": resumes_exactly,
    "repeats exactly": repeats_exactly,
    "experiment round-trips": experiment_round_trips,
    "neutral changes nothing": neutral_changes_nothing,
    "learns": learns,
}


def _run(one: Federation, first: int, last: int) -> None:
    for number in range(first, last + 1):
        one.round(number)


def _trained(one: Federation, rounds: int = _ROUNDS) -> dict[str, Tensor]:
    _run(one, 1, rounds)
    return _predictions(one)


def _predictions(one: Federation) -> dict[str, Tensor]:
    """Everything that may be compared: scores of all items for all clients, shared and private values."""
    everybody = torch.arange(one.world.num_clients, device=one.machine.device)
    scores = scorer_of(one).scores(everybody, None)
    values, _ = one.state.predicting(everybody, None)
    found = {"scores": scores, **{f"value {k}": v for k, v in values.items()}}
    found |= {f"shared {k}": v for k, v in one.state.shared.items()}
    found |= {f"reported {k}": v for k, v in one.state.reported.items()}
    return {name: value.cpu() for name, value in found.items()}


def _assert_close(left: Mapping[str, Tensor], right: Mapping[str, Tensor], tolerance: float) -> None:
    assert set(left) == set(right)
    for name, value in left.items():
        difference = float((value - right[name]).abs().max()) / _scale(value)
        hint = "a loss must weigh rows by batch.counts: rows with count 0 may be padding"
        assert difference <= tolerance, f"{name} differs by {difference:.2e}, more than {tolerance:.0e} ({hint})"


def _scale(value: Tensor) -> float:
    return max(1.0, float(value.abs().max()))


def _hit_rate(one: Federation, split: Split) -> float:
    _, test = rankers(HONEST, split, seed=0, device=one.machine.device, memory=10**8)
    standing = test.rank(scorer_of(one))
    return float(np.mean(hit_rate(standing, 10)))
