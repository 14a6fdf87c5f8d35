"""Checks that every model passes, federated or central, and whether it learns. Each runs the model for real.

Learning is asked in a world whose answer is known, with room for another machine's rounding. A check that fails raises
`AssertionError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from ownview.baselines.parts.central import Central, OneShot
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST
from ownview.federation.options import FederationOptions
from ownview.registry import MODELS, Model
from ownview.round.federation import Federation
from ownview.runs.experiment import Experiment, describe_model
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.trainers import FederatedTrainer, trainer
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.roles import PERSONAL
from ownview.seam.training import ANY_WORLD
from ownview.testing.worlds import block_world, small_world

Say = Callable[[str], None]
InRounds = TypeVar("InRounds", bound=Trainer | Federation)


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


def trained(one: InRounds, first: int, last: int) -> InRounds:
    """The same after some more rounds."""
    for number in range(first, last + 1):
        one.round(number)
    return one


def scores_of(one: Trainer, split: Split, device: str = "cpu") -> Tensor:
    """[n, m] of everybody."""
    return one.asked(split.test).scores(torch.arange(split.num_users, device=device), None).cpu()


def rounds_of(model: Model, wanted: int) -> int:
    """Number of rounds: `wanted`, or one for a model fitted at once."""
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
    if name in MODELS:
        assert Experiment.from_toml(toml).model() == model


_GROUPS, _USERS, _ITEMS, _PER_USER = 2, 20, 20, 12
_TOP = 5
_ENOUGH = 0.6
"""Share of the own group's items among the first `_TOP` recommended. Chance is 1/3, and clients that share nothing
stay below 0.45 however long they train."""
_MOST_ROUNDS, _LOOK_EVERY = 60, 5
"""Rounds until a model must have got there; the slowest needed 25, and how many it takes may hang on rounding."""
_FALLEN = 0.7
"""Share of the first round's loss that the training loss must fall below."""


def learns(model: Model) -> None:
    """In a world of groups, what is shared teaches users their group's items; alone they can only fit training.

    Asked only of methods in which what a client receives replaces what it had: one that goes on from its own table may
    fit its training samples so closely that what is shared teaches it nothing, which is no fault of the code. Of that
    one only the loss is asked. Of a central model only the items are.
    """
    split = block_world(_GROUPS, _USERS, _ITEMS, _PER_USER)
    one, first = at_work(model, split), None
    fits_alone = isinstance(one, FederatedTrainer) and _fits_alone(one.federation)
    most = rounds_of(model, (model.enough if isinstance(model, Federated) else None) or _MOST_ROUNDS)
    for number in range(1, most + 1):
        loss = one.round(number).loss
        first = loss if number == 1 else first
        fell = not isinstance(model, Federated) or first is None or loss is None or loss < _FALLEN * first
        if fell and fits_alone:
            return
        if fell and (number % _LOOK_EVERY == 0 or number == most) and _share(scores_of(one, split), split) >= _ENOUGH:
            return
    reached = _share(scores_of(one, split), split)
    found = f"{reached:.0%} of the first {_TOP} are the group's, expected {_ENOUGH:.0%}" if reached < _ENOUGH else ""
    fall = "" if fell else f"the loss went from {first} to {loss}, expected less than {_FALLEN} of the first"
    raise AssertionError(
        f"after {most} rounds {'; '.join(filter(None, (found, fall)))}; "
        "where the method is right, try a larger rate or smaller initial values"
    )


def _fits_alone(one: Federation) -> bool:
    params, work = one.client.params.values(), one.client.work
    received = any(param.from_server for param in params)
    return not isinstance(work, Reporting) and (not received or any(param.role is PERSONAL for param in params))


def _share(scores: Tensor, split: Split) -> float:
    """Mean share of the user's group among its `_TOP` best items outside training."""
    items = split.data.items[torch.arange(split.num_items)].astype(int) // _ITEMS
    users = split.data.users[torch.arange(split.num_users)].astype(int) // _USERS
    mine = torch.as_tensor(items)[None] == torch.as_tensor(users)[:, None]
    known = split.training_items()
    for user in range(split.num_users):
        scores[user, known.of(user)] = -torch.inf
    return float(mine.gather(1, scores.topk(_TOP).indices).double().mean())


CentralCheck = Callable[[Central], None]


def conform_central(model: Central, say: Say = print) -> None:
    """Run every check, saying what is checked as it goes."""
    run_checks(model, CENTRAL_CHECKS, say)


def scores_are_numbers(model: Central) -> None:
    """[B, m] finite scores, which do not depend on who else is asked about."""
    split = small_world()
    one = trained(at_work(model, split), 1, rounds_of(model, 2))
    every = scores_of(one, split)
    assert every.shape == (split.num_users, split.num_items), f"scores have shape {tuple(every.shape)}"
    assert bool(torch.isfinite(every).all()), "some scores are not finite"
    some, scorer = torch.tensor([5, 2]), one.asked(split.test)
    # Single precision: sums of up to 60 products, in whatever order the matrix product takes them.
    difference = float((scorer.scores(some, None) - every[some]).abs().max()) / max(1.0, float(every.abs().max()))
    assert difference <= 1e-5, f"scores of a user change by {difference:.1e} with who else is asked about"
    chosen = torch.tensor([[3, 0], [1, 1]])
    both = scorer.scores(some, chosen), scorer.scores(some, None).gather(1, chosen)
    assert torch.equal(*both), "chosen items score others"


CENTRAL_CHECKS: Mapping[str, CentralCheck] = {
    "scores are numbers": scores_are_numbers,
    "repeats exactly": repeats_exactly,
    "resumes exactly": resumes_exactly,
    "experiment round-trips": experiment_round_trips,
    "learns": learns,
}
