"""What places know of their users, and their ratings: the same rounds as in a simulation, checked, and kept at home."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from examples.two_tower import TwoTower
from torch import Tensor

import ownview as ov
from ownview import registry
from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import ServerFolder
from ownview.deploy.place import Place
from ownview.deploy.places.advice import advise
from ownview.deploy.places.holdings import read_holdings
from ownview.round.scorers import folded_in
from ownview.runs.experiment import Experiment
from tests.deploy.in_process import InProcess
from tests.deploy.replay import Besides
from tests.deploy.world import ITEMS, QUICK, agreement, assert_equal, replayed, write_homes
from tests.outcome import Outcome

ABOUT = {"kind": tuple(f"kind {k % 5}" for k in range(ITEMS))}
SMALL = {"embedding_size": 4, "features": 16, "local_epochs": 2, "learning_rate": 0.05}


@dataclass(frozen=True)
class RatedTowers(TwoTower):
    """Two towers beside a number of the client's own for its ratings."""

    name: ClassVar[str] = "rated-towers"
    summary: ClassVar[str] = "a test"

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Those of two towers, ratings, and how much they count."""
        return super().params(world) | {"rated": ov.ratings(world), "weight": ov.shared()}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Everything moves but data."""
        moving = tuple(name for name in self.params(world) if name not in ("about", "person", "rated"))
        return (ov.Phase((ov.Step(moving, ov.Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R]."""
        return super().scores(p) + p["weight"] * p["rated"]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places run registered methods alone, as those of an installed package are."""
    for one in (TwoTower, RatedTowers):
        monkeypatch.setitem(registry.MODELS, one.name, one)


def _agreed(method: str = "rated-towers", **more: Any) -> Agreement:
    given: dict[str, Any] = {"about": ABOUT, "user_columns": ("trade", "age"), "ratings": True, **more}
    return agreement(method=method, settings=SMALL, **given)


def _with_facts(homes: dict[str, Path]) -> Besides:
    """Ratings and a table of users for every home; the first user of each stands in no table."""
    ratings: dict[tuple[str, str], float] = {}
    users: dict[str, dict[str, str]] = {"trade": {}, "age": {}}
    for home in homes.values():
        rows = (home / "ratings.csv").read_text().splitlines()[1:]
        lines, features = ["user,item,timestamp,rating"], ["city,age,user,trade"]
        for row in rows:
            user, item, _ = row.split(",")
            ratings[user, item] = float(1 + len(ratings) % 5)
            lines.append(f"{row},{ratings[user, item]}")
        for k, user in enumerate(dict.fromkeys(row.split(",")[0] for row in rows)):
            if k:
                users["trade"][user], users["age"][user] = f"secret trade {k % 3}", str(20 + k)
                features.append(f"nowhere,{users['age'][user]},{user},{users['trade'][user]}")
        (home / "ratings.csv").write_text("\n".join([*lines, f"{lines[1][:-3]}9"]) + "\n")  # of two the first counts
        (home / "users.csv").write_text("\n".join(features) + "\n")
    return Besides(ratings, users)


@pytest.mark.parametrize("method", ["two-tower", "rated-towers"])
def test_with_features_and_ratings_places_equal_a_simulation(method: str, tmp_path: Path) -> None:
    homes, agreed = write_homes(tmp_path), _agreed(method)
    besides = _with_facts(homes)
    places = {name: Noted(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.run(3)
    simulation = replayed(agreed, homes, tmp_path / "server", besides)
    clients = simulation.work.home.clients
    assert len({tuple(one) for one in clients.features["person"][:30].tolist()}) > 5
    assert method == "two-tower" or float(clients.data_tables(torch.arange(30))["rated"].max()) == 5
    assert_equal(agreed, coordinator, {name: one.place for name, one in places.items()}, simulation)
    left = b"".join(one for place in places.values() for one in place.left)
    assert b"user_tower" in left
    assert b"secret" not in left


class Noted:
    """A place, and everything that has left it."""

    def __init__(self, home: Path) -> None:
        self.place, self.left = Place(home), list[bytes]()

    def answer(self, message: bytes) -> bytes:
        self.left.append(self.place.answer(message))
        return self.left[-1]


def test_an_agreement_states_what_its_method_asks_for_and_no_more() -> None:
    ids, about = np.array([f"i{k}" for k in range(ITEMS)], dtype=object), ItemTable(ABOUT)

    def of(method: str) -> Agreement:
        known = {"user_columns": ("trade", "age"), "ratings": True}
        return Agreement.of(Experiment(method), ids, None, 30, hold_out=False, about=about, **known)  # type: ignore[arg-type]

    assert of("rated-towers").world().ratings
    assert of("rated-towers").user_columns == of("two-tower").user_columns == ("trade", "age")
    assert not of("two-tower").ratings
    assert of("two-tower").about == ABOUT
    plain = of("fedmf")
    assert (plain.about, plain.user_columns, plain.ratings) == ({}, (), False)
    assert Agreement.unpack(of("rated-towers").pack()) == of("rated-towers")
    with pytest.raises(SettingError, match="parameter 'rated': the data has no ratings; expected a column rating"):
        _agreed(ratings=False).terms()


def test_init_states_what_places_know(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    rows = [f"i{k},title {k},kind {k % 3}" for k in range(9)]
    (tmp_path / "items.csv").write_text("\n".join(["item,title,kind", *rows]) + "\n")
    words = ("--items", tmp_path / "items.csv", "--ratings", "--user-columns", "trade, age")
    done = ownview("deploy", "init", tmp_path / "server", "rated-towers", *words)
    assert done.code == 0
    agreed = ServerFolder(tmp_path / "server").agreement()
    assert (agreed.ratings, agreed.user_columns, set(agreed.about)) == (True, ("trade", "age"), {"title", "kind"})
    refused = ownview("deploy", "init", tmp_path / "other", "rated-towers", *words[:2])
    assert refused.code == 2
    assert "the data has no ratings; expected a column rating" in refused.err


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (("users.csv", None), "users.csv: is not there, and rated-towers asks for what is known of users; expected a "),
        (("users.csv", "user,trade,ages\neast-0,a,1\n"), "users.csv: no column 'age', and rated-towers asks for what "),
        (("users.csv", "user,trade,age\nanother,a,1\n"), "names none of the users of the data"),
        (
            ("ratings.csv", "user,item,timestamp\neast-0,i1,5\n"),
            "ratings.csv: no column rating with a number in every ",
        ),
    ],
)
def test_a_place_without_what_was_agreed_on_says_so_at_home_and_does_not_join(
    spoil: tuple[str, str | None], why: str, tmp_path: Path
) -> None:
    homes = write_homes(tmp_path, ("east", "west"), users=4)
    _with_facts(homes)
    file, said = homes["east"] / spoil[0], list[str]()
    file.unlink()
    if spoil[1] is not None:
        file.write_text(spoil[1])
    places = {"east": Place(homes["east"], said.append), "west": Place(homes["west"])}
    coordinator = Coordinator(_agreed(room=8), InProcess(places), tmp_path / "server", QUICK)
    assert list(coordinator.round(1).counted) == ["west"]
    assert any(why in line and "\n" not in line for line in said)
    assert places["east"].agreement is None


def test_what_is_known_of_users_may_change_and_counts_from_the_next_round_on(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("east",), users=4)
    _with_facts(homes)
    place, agreed = Place(homes["east"]), _agreed(room=4)
    coordinator = Coordinator(agreed, InProcess({"east": place}), tmp_path / "server", QUICK)
    coordinator.round(1)
    before = place.residents.clients.features["person"].clone() if place.residents else torch.zeros(0)
    (homes["east"] / "users.csv").write_text("user,trade,age\neast-0,farmer,70\n")
    coordinator.round(2)
    assert place.residents is not None
    after = place.residents.clients.features["person"]
    assert int((before[0] != 0).sum()) == 0 < int((after[0] != 0).sum())
    assert not after[1:].any()


def test_who_never_took_part_is_advised_by_its_own_ratings_and_features(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("east",), users=4)
    _with_facts(homes)
    place, agreed = Place(homes["east"]), _agreed(room=4)
    Coordinator(agreed, InProcess({"east": place}), tmp_path / "server", QUICK).run(2)
    for file, rows in (("ratings.csv", "late,i1,50,5\nlate,i2,51,1\n"), ("users.csv", "nowhere,33,late,nurse\n")):
        with (homes["east"] / file).open("a") as written:
            written.write(rows)
    found = advise(homes["east"], "late", ITEMS)
    assert not found.taken_part
    held = read_holdings(homes["east"] / "ratings.csv", agreed, (), homes["east"] / "users.csv")
    download = agreed.terms().codec.read_download(place.newest.download)
    facts = held.facts.part(range(4, 5))
    line, ids = held.timeline.of(4), np.array(["late"], dtype=object)
    scores = folded_in(agreed.terms(), download, line, ids, facts).scores(torch.zeros(1).long(), None)[0]
    advised = {one.item: one.score for one in found.items}
    assert advised == {one: float(scores[int(one[1:])]) for one in advised}
    without = folded_in(agreed.terms(), download, line, ids).scores(torch.zeros(1).long(), None)[0]
    assert not torch.allclose(scores, without)
