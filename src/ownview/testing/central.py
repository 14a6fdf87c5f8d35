"""Checks of models that are not federated. Each runs the model for real and raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from ownview.baselines.central import Central, InEpochs
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.metrics import hit_rate
from ownview.evaluation.protocol import HONEST
from ownview.evaluation.ranking import rankers
from ownview.federation.options import FederationOptions
from ownview.registry import BASELINES
from ownview.runs.experiment import Experiment, describe_model
from ownview.runs.trainers import Trainer, trainer
from ownview.testing.worlds import block_world, small_world

CentralCheck = Callable[[Central], None]

_EPOCHS = 40
"""What a model that trains in epochs gets in order to learn; one that is fitted has its own settings."""


def conform_central(model: Central) -> None:
    """Run every check."""
    for name, check in CENTRAL_CHECKS.items():
        try:
            check(model)
        except AssertionError as error:
            raise AssertionError(f"{model.name}: {name}: {error}") from error


def scores_are_numbers(model: Central) -> None:
    """[B, m] finite scores, which do not depend on who else is asked about."""
    split = small_world()
    one = _trained(model, split, 2)
    every = _scores(one, split)
    assert every.shape == (split.num_users, split.num_items), f"scores have shape {tuple(every.shape)}"
    assert bool(torch.isfinite(every).all()), "some scores are not finite"
    some = torch.tensor([5, 2])
    difference = float((one.scores(some, None) - every[some]).abs().max())
    assert difference <= 1e-5, f"scores of a user change by {difference:.1e} with who else is asked about"
    chosen = torch.tensor([[3, 0], [1, 1]])
    assert torch.equal(one.scores(some, chosen), one.scores(some, None).gather(1, chosen)), "chosen items score others"


def repeats_exactly(model: Central) -> None:
    """Two runs with one seed agree bit for bit."""
    split = small_world()
    first, second = (_scores(_trained(model, split, 2), split) for _ in range(2))
    assert torch.equal(first, second), "two runs with the same seed differ"


def resumes_exactly(model: Central) -> None:
    """Saved in the middle and restored, training ends bit for bit as if it had never stopped."""
    split = small_world()
    stops, ends = (2, 4) if isinstance(model, InEpochs) else (1, 1)
    whole, first, second = _trained(model, split, ends), _trained(model, split, stops), _trainer(model, split)
    second.unpack({name: value.clone() for name, value in first.pack().items()})
    for number in range(stops + 1, ends + 1):
        second.round(number)
    assert torch.equal(_scores(whole, split), _scores(second, split)), "scores differ after a resume"


def experiment_round_trips(model: Central) -> None:
    """An experiment with this model survives TOML unchanged, and builds an equal model."""
    name, settings, plugins = describe_model(model)
    toml = Experiment(method=name, settings=settings, plugins=plugins).to_toml()
    assert Experiment.from_toml(toml).to_toml() == toml
    if name in BASELINES:
        assert Experiment.from_toml(toml).model() == model


def learns(model: Central) -> None:
    """In a world of groups it recommends a user the items of the group: twice as many hits as chance at least."""
    split = block_world()
    one = _trained(model, split, _EPOCHS)
    _, test = rankers(HONEST, split, seed=0, device=torch.device("cpu"), memory=10**8)
    reached, chance = float(np.mean(hit_rate(test.rank(one), 10))), 10 / (split.num_items - 18)
    assert reached > 2 * chance, f"HR@10 {reached:.3f} is not twice chance, {chance:.3f}"


CENTRAL_CHECKS: Mapping[str, CentralCheck] = {
    "scores are numbers": scores_are_numbers,
    "repeats exactly": repeats_exactly,
    "resumes exactly": resumes_exactly,
    "experiment round-trips": experiment_round_trips,
    "learns": learns,
}


def _trainer(model: Central, split: Split) -> Trainer:
    return trainer(model, split, HONEST, FederationOptions(), 0, Machine(torch.device("cpu")))


def _trained(model: Central, split: Split, epochs: int) -> Trainer:
    one = _trainer(model, split)
    for number in range(1, (epochs if isinstance(model, InEpochs) else 1) + 1):
        one.round(number)
    return one


def _scores(one: Trainer, split: Split) -> Tensor:
    return one.scores(torch.arange(split.num_users), None)
