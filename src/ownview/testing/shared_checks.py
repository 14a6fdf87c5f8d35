"""Checks that every model passes, federated or central. Each runs the model for real and raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ownview.baselines.central import OneShot
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.protocol import HONEST
from ownview.federation.options import FederationOptions
from ownview.registry import BASELINES, METHODS, Model
from ownview.runs.experiment import Experiment, describe_model
from ownview.runs.trainers import Trainer, trainer
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.training import ANY_WORLD
from ownview.testing.worlds import small_world

Say = Callable[[str], None]


def run_checks(model: Model, checks: Mapping[str, Callable[..., None]], say: Say) -> None:
    """Run every check, saying what it checks as it goes."""
    for name, check in checks.items():
        what = (check.__doc__ or "").split("\n", maxsplit=1)[0]
        say(f"{model.name}: {name} - {what}")
        try:
            check(model)
        except AssertionError as error:
            raise AssertionError(f"{model.name}: {name}: {error}") from error


def at_work(
    model: Model, split: Split, options: FederationOptions | None = None, seed: int = 0, device: str = "cpu"
) -> Trainer:
    """A model in single precision, ready to train."""
    return trainer(model, split, HONEST, options or FederationOptions(), seed, Machine(torch.device(device)))


def trained(one: Trainer, first: int, last: int) -> Trainer:
    """The same after some more rounds."""
    for number in range(first, last + 1):
        one.round(number)
    return one


def scores_of(one: Trainer, split: Split, device: str = "cpu") -> Tensor:
    """[n, m] of everybody."""
    return one.asked(split.test).scores(torch.arange(split.num_users, device=device), None).cpu()


def rounds_of(model: Model, wanted: int) -> int:
    """As many rounds as wanted; one where a model is fitted at once."""
    return 1 if isinstance(model, OneShot) else wanted


def repeats_exactly(model: Model, device: str = "cpu") -> None:
    """Two runs with one seed agree bit for bit; of a federated method, another seed gives other scores."""
    split, options = small_world(), FederationOptions(clients="0.5")
    rounds = rounds_of(model, 2)
    first, again = (
        scores_of(trained(at_work(model, split, options, 0, device), 1, rounds), split, device) for _ in range(2)
    )
    assert torch.equal(first, again), "two runs with the same seed differ"
    if isinstance(model, Federated):
        other = scores_of(trained(at_work(model, split, options, 1, device), 1, rounds), split, device)
        assert not torch.equal(first, other), "the seed changes nothing"


def resumes_exactly(model: Model, device: str = "cpu") -> None:
    """Saved in the middle and restored, training ends bit for bit as if it had never stopped."""
    split = small_world()
    options = options_for(model)[-1] if isinstance(model, Federated) else FederationOptions()
    stops, ends = (1, 1) if isinstance(model, OneShot) else (2, 3)
    first = trained(at_work(model, split, options, device=device), 1, stops)
    saved = {name: value.clone() for name, value in first.pack().items()}
    second = at_work(model, split, options, device=device)
    second.unpack(saved)
    whole, resumed = (scores_of(trained(one, stops + 1, ends), split, device) for one in (first, second))
    assert torch.equal(whole, resumed), "scores differ after a resume"


def options_for(method: Federated) -> list[FederationOptions]:
    """All and half of the clients, without and with an optimiser of the server where the method has a use for one."""
    reports = isinstance(method.client(ANY_WORLD).work, Reporting)
    optimizers: list[dict[str, object]] = [{}, {"server_optimizer": "adam", "server_learning_rate": 0.1}]
    return [
        FederationOptions.of({"clients": clients, **optimizer})
        for clients in ("all", "0.5")
        for optimizer in (optimizers[:1] if reports else optimizers)
    ]


def experiment_round_trips(model: Model) -> None:
    """An experiment with this model survives TOML unchanged, and builds an equal model."""
    name, settings, plugins = describe_model(model)
    toml = Experiment(method=name, settings=settings, plugins=plugins).to_toml()
    assert Experiment.from_toml(toml).to_toml() == toml
    if name in {**METHODS, **BASELINES}:
        assert Experiment.from_toml(toml).model() == model
