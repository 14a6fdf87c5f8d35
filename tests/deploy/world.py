"""A small world of places: ratings in files of their own, and what a simulation makes of the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordination.register import Register
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.deploy.places.holdings import Holdings, read_holdings
from ownview.deploy.settings import CoordinatorSettings
from ownview.federation.options import FederationOptions
from ownview.round.scorers import scorer_of
from tests.deploy.replay import Besides, Replay

NAMES = ("east", "north", "west")
ITEMS = 24
SMALL = {"embedding_size": 4, "local_epochs": 2}
CASES: Mapping[str, dict[str, Any]] = {
    "fedmf": {"method": "fedmf", "settings": SMALL},
    "pfedrec": {"method": "pfedrec", "settings": {"embedding_size": 4}},
    "fedrap": {"method": "fedrap", "settings": SMALL},
    "pfedclr": {"method": "pfedclr", "settings": SMALL},
    "plgc": {"method": "fedmf", "settings": SMALL, "plugins": (("plgc", {}),)},
    "fedease": {"method": "fedease"},
    "fednext": {"method": "fednext"},
}
QUICK = CoordinatorSettings(resend=0.05, greeting=0.2, deadline=0.2)


def agreement(
    case: str = "fedmf",
    *,
    clients: str = "all",
    room: int = 30,
    options: FederationOptions | None = None,
    **more: Any,
) -> Agreement:
    """Of a method on the small world, float64 unless said otherwise."""
    options = options or FederationOptions(clients=clients)
    given = {"precision": "float64", "seed": 3, **CASES[case], **more}
    return Agreement(clients=room, items=tuple(f"i{k}" for k in range(ITEMS)), federation=options, **given)


def write_homes(folder: Path, names: tuple[str, ...] = NAMES, users: int = 10) -> dict[str, Path]:
    """A home for every place, each with some users of different activity."""
    homes = {}
    for name in names:
        homes[name] = folder / name
        homes[name].mkdir(parents=True)
        write_ratings(homes[name], name, users)
    return homes


def write_ratings(home: Path, name: str, users: int) -> None:
    """Ratings of a place's first users; those of a user are the same however many there are."""
    rows = ["user,item,timestamp"]
    for user in range(users):
        random = np.random.default_rng([*name.encode(), user])
        items = random.choice(ITEMS, size=int(random.integers(4, 10)), replace=False)
        rows += [f"{name}-{user},i{item},{random.integers(1000, 9000)}" for item in items]
    (home / "ratings.csv").write_text("\n".join(rows) + "\n")


def all_holdings(agreed: Agreement, homes: Mapping[str, Path], folder: Path) -> Holdings:
    """All users by identity, as the register of a coordinator has it."""
    places = Register(folder / "register.json", agreed.clients).places
    held = {name: read_holdings(homes[name] / "ratings.csv", agreed, (), homes[name] / "users.csv") for name in places}
    owner = {identity: (name, k) for name, mine in places.items() for k, identity in enumerate(mine)}
    one_by_one = [_alone(held[name], k) for name, k in (owner[identity] for identity in range(len(owner)))]
    joined = one_by_one[0]
    for one in one_by_one[1:]:
        joined = joined.joined(one)
    return joined


def _alone(held: Holdings, place: int) -> Holdings:
    return Holdings(
        held.users[place : place + 1],
        type(held.train).one(held.train.of(place)),
        held.timeline.of(place),
        held.held_out[place : place + 1],
    )


def replayed(agreed: Agreement, homes: Mapping[str, Path], folder: Path, besides: Besides | None = None) -> Replay:
    """The simulation of what a coordinator's folder says was done."""
    simulation = Replay(agreed, all_holdings(agreed, homes, folder), read_log(folder / "participants.jsonl"), besides)
    simulation.run()
    return simulation


def assert_equal(
    agreed: Agreement, coordinator: Coordinator, places: Mapping[str, Place], simulation: Replay, within: float = 1e-9
) -> None:
    """The server's values, and the scores at every place, are those of the simulation."""
    packed, expected = coordinator.server.pack(), simulation.server.pack()
    for name in (one for one, value in expected.items() if value.is_floating_point()):
        assert_close(packed[name], expected[name], within, f"the server's {name}")
    scores = scorer_of(simulation).scores(torch.arange(agreed.clients), None)
    for name, place in places.items():
        mine = torch.tensor(coordinator.register.places[name])
        assert place.newest.round == coordinator.done
        base = place.generations.after(coordinator.standing.counted.get(name, 0))
        residents = place._at_home(place.terms, base)
        found = residents.scores(place.newest.download, torch.arange(len(mine)))
        assert_close(found, scores[mine], within, f"scores at {name}")


def assert_close(found: torch.Tensor, expected: torch.Tensor, within: float, what: str) -> None:
    scale = max(float(expected.abs().max()), 1e-30) if expected.numel() else 1.0
    assert found.shape == expected.shape, what
    assert float((found - expected).abs().max()) <= within * scale, what
