"""How much of an item a client took reaches a method that asks: of rows that it knows alone, the same on every path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import ownview as ov
from ownview.data.datasets.storage import store
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.deploy.places.holdings import read_holdings
from ownview.federation.facts import OwnFacts, OwnRows
from ownview.runs.files.data_copy import read_histories, write_histories
from ownview.seam.roles import QUANTITIES, RATINGS
from ownview.sums.histories import with_facts
from ownview.testing import CHECKS, federation, small_world
from tests.deploy.world import agreement

# user, item, time, rating, quantity; the latest row is asked at test, the one before it at validation.
ROWS = [
    ("a", "p", 9, 1.0, 100.0),
    ("a", "p", 1, 2.0, 2.0),
    ("a", "r", 2, 3.0, 1.5),
    ("a", "p", 3, 4.0, 5.0),
    ("a", "s", 8, 5.0, 9.0),
]


@dataclass(frozen=True)
class Counted(ov.Method):
    """score = q_i + w log(1 + how much the client took) + v rating."""

    name: ClassVar[str] = "counted"
    summary: ClassVar[str] = "a test"

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Quantities, ratings where there are any, two numbers of the client's own, and a shared one an item."""
        rated = {"rated": ov.ratings(world)} if world.ratings else {}
        own = {"w": ov.private(initial=ov.Constant(0.1)), "v": ov.private(initial=ov.Constant(0.1))}
        return {"taken": ov.quantities(), **rated, **own, "items": ov.table(ov.shared())}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """What is no data moves."""
        return (ov.Phase((ov.Step(("w", "v", "items"), ov.Sgd(0.05)),), 1),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R]."""
        score = p["items"] + p["w"] * torch.log1p(p["taken"])
        return score + p["v"] * p["rated"] if "rated" in p else score


def _data() -> ov.Interactions:
    users, items, times, ratings, quantities = zip(*ROWS, strict=True)
    return ov.Interactions.from_rows("rows", users, items, ratings, times, quantity=quantities)


def _repeating(num_users: int = 23) -> Split:
    """A small world in which everybody takes half of its items again, in other amounts."""
    data = small_world(num_users).data
    random = np.random.default_rng(7)
    again = random.random(len(data)) < 0.5
    users = np.concatenate([data.users[data.user], data.users[data.user[again]]])
    items = np.concatenate([data.items[data.item], data.items[data.item[again]]])
    size = len(users)
    made = ov.Interactions.from_rows(
        "again", users, items, random.integers(1, 6, size).astype(float), random.permutation(size),
        quantity=random.integers(1, 9, size).astype(float),
    )  # fmt: skip
    return leave_one_out(made, ties="hash", untimed="random", seed=0)


def test_a_client_sees_quantities_and_ratings_of_rows_that_it_knows_alone() -> None:
    data = _data()
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    one = federation(Counted(negatives=1), split)
    place = {item: k for k, item in enumerate(data.items.tolist())}
    seen = one.work.home.clients.data_tables(torch.tensor([0]))
    assert [float(seen["taken"][0, place[item]]) for item in "prs"] == [7.0, 1.5, 0.0]
    assert [float(seen["rated"][0, place[item]]) for item in "prs"] == [4.0, 3.0, 0.0]


def test_without_quantities_every_row_counts_one() -> None:
    bare = replace(_data(), quantity=None)
    split = leave_one_out(bare, ties="hash", untimed="random", seed=0)
    for data in (bare, replace(bare, rating=None)):
        one = federation(Counted(negatives=1), replace(split, data=data))
        seen = one.work.home.clients.data_tables(torch.tensor([0]))["taken"][0]
        assert sorted(seen.tolist()) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "check",
    ["loop equals vector", "alone equals vector", "blocks change nothing", "resumes exactly", "repeats exactly"],
)
def test_a_method_that_asks_for_them_conforms_where_items_repeat(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("federated", "checks"):
        monkeypatch.setattr(f"ownview.testing.{module}.small_world", _repeating)
    CHECKS[check](Counted())


def test_parts_of_facts_know_their_clients_rows() -> None:
    split = _repeating()
    whole, part = OwnFacts.of(split), OwnFacts.of(split).part(range(4, 7))
    counts = torch.randint(0, 3, (3, split.num_items), generator=torch.Generator().manual_seed(0)).double()
    for role in (RATINGS, QUANTITIES):
        expected = whole.table(role, torch.arange(4, 7), counts)
        assert expected.any()
        assert torch.equal(expected, part.table(role, torch.arange(3), counts))


def test_rows_are_sorted_for_those_alone_who_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    split = _repeating()
    world = small_world()
    with_role, without = {"taken": ov.quantities()}, {"w": ov.private()}
    counts = torch.ones(3, split.num_items)
    given = OwnFacts.of(split, with_role).table(QUANTITIES, torch.arange(3), counts)
    assert torch.equal(given, OwnFacts.of(split).table(QUANTITIES, torch.arange(3), counts))
    assert OwnFacts.of(split, without).rows is None
    assert OwnFacts.of(split, without).users is split.data.about_users
    monkeypatch.setattr(OwnRows, "of", lambda data: pytest.fail("sorted"))
    federation(ov.FedMF(), replace(world, data=replace(world.data, rating=np.ones(len(world.data)))))


def test_files_keep_quantities_and_drop_returns(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("user,item,quantity\na,p,3\na,q,-2\nb,p,\nb,q,0.5\n")
    data = ov.load(file)
    assert data.quantity is not None
    assert data.quantity.tolist() == [3.0, 1.0, 0.5]
    assert data.unread == ()
    stored = ov.load(store(data, "shop", tmp_path, {}))
    assert stored.fingerprint() == data.fingerprint() != replace(data, quantity=None).fingerprint()
    write_histories(tmp_path, data)
    copied = read_histories(tmp_path)
    assert copied is not None
    assert copied.fingerprint() == data.fingerprint()
    frame: dict[str, list[Any]] = {"user": ["a", "b", "b"], "item": ["p", "p", "q"], "quantity": [3, 1, 0.5]}
    assert ov.Interactions.from_frame("shop", frame).fingerprint() == data.fingerprint()
    assert data.in_order_of_appearance().select(np.array([False, True, True])).quantity is not None
    file.write_text("user,item,quantity\na,p,three\nb,p,1\n")
    assert ov.load(file).quantity is None


def test_rows_that_come_later_bring_their_quantities() -> None:
    before = ov.Interactions.from_rows("shop", ["a", "b"], ["p", "p"])
    more = ov.Interactions.from_rows("shop", ["a", "c"], ["q", "q"], quantity=[4.0, 2.0])
    whole = ov.Interactions.from_rows("shop", ["a", "b", "a", "c"], ["p", "p", "q", "q"])
    found = with_facts(whole, before, more, 2)
    assert found.quantity is not None
    assert found.quantity.tolist() == [1.0, 4.0, 1.0, 2.0]


def test_places_have_quantities_too(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,quantity\nanna,i3,2\nben,i1,7\nanna,i2,5\nanna,i3,9\nanna,unheard of,8\n")
    held = read_holdings(file, agreement("fedmf"), ["ben"])
    counts = torch.zeros(2, 24)
    for k in range(2):
        counts[k, held.train.of(k)] = 1
    found = held.facts.table(QUANTITIES, torch.arange(2), counts)
    assert (float(found[0, 1]), float(found[1, 2]), float(found[1, 3]), float(found.sum())) == (7, 5, 2, 14)
    file.write_text("user,item,quantity\nanna,unheard of,8\n")
    none = read_holdings(file, agreement("fedmf")).facts
    assert not none.table(QUANTITIES, torch.arange(1), torch.zeros(1, 24)).any()
