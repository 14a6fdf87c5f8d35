"""Features of items and users, and ratings, as methods see them: aligned, the same alone, refused where they lack."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from examples import two_tower
from examples.two_tower import TwoTower
from torch import Tensor

import ownview as ov
from ownview.base.errors import DataError, SettingError
from ownview.base.items.item_table import MOST_COLUMNS, ItemTable
from ownview.base.items.item_text import feature_matrix
from ownview.data.splitting.splits import Split
from ownview.evaluation.named_protocols import NEW_ITEMS
from ownview.federation.facts import OwnFacts, world_of
from ownview.round.scorers import scorer_of
from ownview.seam.roles import RATINGS
from ownview.testing import CHECKS, small_world
from ownview.testing.worlds import federation

SMALL = TwoTower(embedding_size=4, features=16, local_epochs=2, learning_rate=0.05)


@dataclass(frozen=True)
class Rated(ov.Method):
    """score = q_i + u sum of the client's ratings; a method that asks for ratings."""

    name: ClassVar[str] = "rated"
    summary: ClassVar[str] = "a test"

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Ratings, a private number and a shared one an item."""
        return {"rated": ov.ratings(world), "user": ov.private(), "items": ov.table(ov.shared())}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Both move."""
        return (ov.Phase((ov.Step(("user", "items"), ov.Sgd(0.01)),), 1),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R]."""
        return p["items"] + p["user"] * p["rated"]


def _rated() -> Split:
    split = small_world()
    return replace(split, data=replace(split.data, rating=(1.0 + np.arange(len(split.data)) % 5).astype(np.float64)))


@pytest.mark.parametrize("check", [name for name in CHECKS if name != "learns"])
def test_two_towers_conform(check: str) -> None:
    CHECKS[check](SMALL)


def test_two_towers_speak_of_new_items() -> None:
    assert len(inspect.getsource(two_tower).splitlines()) <= 60
    split = NEW_ITEMS.prepare(small_world().data)
    one = federation(SMALL, split)
    one.round(1)
    assert float(scorer_of(one).scores(torch.arange(3), None)[:, -split.num_new :].std(1).min()) > 0


def test_features_are_rows_of_the_table_and_follow_ids() -> None:
    table = ItemTable({"kind": ("a|b", "a", "b", "a"), "price": ("1", "3", "", "5")})
    found = feature_matrix(table, 10)
    assert found.shape == (4, 3)
    spread = math.sqrt((4 + 0 + 4) / 3)
    assert found[:, 2].tolist() == pytest.approx([-2 / spread, 0, 0, 2 / spread])
    a, b = 2 * math.log(4 / 3), 2 * math.log(2)
    assert found[0, :2].tolist() == pytest.approx([a / math.hypot(a, b), b / math.hypot(a, b)])
    moved = feature_matrix(table.select([3, 0, 1, 2]), 10)
    assert sorted(map(tuple, moved.tolist())) == sorted(map(tuple, found.tolist()))


def test_ratings_reach_a_client_for_what_it_knows_alone() -> None:
    split = _rated()
    facts = OwnFacts.of(split)
    seen = torch.zeros(1, split.num_items)
    first = int(split.train.of(2)[0])
    seen[0, first] = 1
    found = facts.table(RATINGS, torch.tensor([2]), seen)
    mine = split.data.of(2)
    assert split.data.rating is not None
    wanted = split.data.rating[mine][split.data.item[mine] == first][-1]
    assert found[0, first] == wanted
    assert int((found != 0).sum()) == 1
    loop, vector = (federation(Rated(), split, engine=engine) for engine in ("loop", "vector"))
    for one in (loop, vector):
        one.round(1)
    torch.testing.assert_close(loop.server.shared["items"], vector.server.shared["items"], rtol=1e-10, atol=1e-12)


def test_parts_of_facts_are_those_of_their_clients() -> None:
    split = _rated()
    whole, part = OwnFacts.of(split), OwnFacts.of(split).part(range(4, 7))
    seen = torch.ones(3, split.num_items)
    expected = whole.table(RATINGS, torch.arange(4, 7), seen)
    assert torch.equal(expected, part.table(RATINGS, torch.arange(3), seen))
    assert part.users is not None
    assert part.users.columns["trade"] == ("trade 1", "trade 2", "trade 0")
    assert torch.equal(whole.encoded(("trade",), 23, 8)[4:7], part.encoded(("trade",), 3, 8))


def test_what_the_data_lacks_is_refused_in_one_line() -> None:
    split = small_world()
    world = world_of(split)
    assert world.user_columns == ("trade",)
    bare = replace(split, data=replace(split.data, about=None))
    for method, data, message in (
        (Rated(), split, "parameter 'rated': the data has no ratings; expected a column rating"),
        (SMALL, bare, "parameter 'about': nothing is known of the items but their ids"),
    ):
        with pytest.raises(SettingError, match=message):
            federation(method, data)
    lacking = ov.item_features(world, "titel").initial
    assert "no column 'titel'; expected one of title; did you mean 'title'?" in getattr(lacking, "missing", "")
    people = ov.user_features(world, "age").initial
    assert "the user table has no column 'age'; expected one of trade" in getattr(people, "missing", "")


def test_features_do_not_move() -> None:
    class Moving(TwoTower):
        def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
            """Everything, features too."""
            return (ov.Phase((ov.Step(("about",), ov.Sgd(0.1)),), 1),)

    with pytest.raises(SettingError, match="moves 'about', features of items, which is data and no parameter"):
        federation(Moving(embedding_size=2), small_world())


def test_tables_in_python_are_joined_by_id_and_refused_with_the_reason() -> None:
    data = small_world().data
    ids = [str(one) for one in data.items.tolist()]
    found = data.with_tables(items={"item": ids[::-1], "kind": [f"kind {one}" for one in ids[::-1]]})
    assert found.about is not None
    assert found.about.columns["kind"][:2] == (f"kind {ids[0]}", f"kind {ids[1]}")
    wide = {"item": ids} | {f"c{k}": ids for k in range(MOST_COLUMNS)}
    for table, message in (
        ({"id": ids}, "the table of items has columns id; expected one called 'item'"),
        ({"item": [*ids, ids[0]]}, f"row {len(ids) + 1}: item '{ids[0]}' stands in row 1 too; expected every id once"),
        ({"item": ids, "kind": ids[:3]}, f"columns of 3 to {len(ids)} values; expected one a row"),
        ({"item": ["x", "y"]}, "names none of the items of the data"),
        (wide, f"{MOST_COLUMNS} columns about items or users at most"),
    ):
        with pytest.raises(DataError, match=message):
            data.with_tables(items=table)
