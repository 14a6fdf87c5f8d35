"""A client sees its items in time order, wherever they stand in the tables at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import Adam, Client, Method, Param, Params, Phase, Step, World, private, shared, table, timeline
from ownview.base.errors import SettingError
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.testing.worlds import federation, small_world
from tests.questions import split_by_hand


@dataclass(frozen=True)
class NextItem(Method):
    """score = q_i . (u + mean of the client's last three items, the latest counting most by its place)."""

    name: ClassVar[str] = "next-item"
    title: ClassVar[str] = "NextItem"
    summary: ClassVar[str] = "what comes after the last items"
    whole_rows: ClassVar[bool] = True

    def params(self, world: World) -> dict[str, Param]:
        return {"user": private(3), "items": table(shared(3)), "past": timeline()}

    def phases(self, world: World) -> tuple[Phase, ...]:
        return (Phase((Step(("user", "items"), Adam(0.05)),), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        mask = p["past.mask"]
        left = mask.sum() - mask.cumsum(0)  # how many come later
        weights = mask * (3 - left).clamp(min=0)
        return p["items"] @ (p["user"] + weights @ p["items"][p["past.rows"]])

    def client(self, world: World) -> Client:
        return replace(super().client(world), whole_rows=self.whole_rows)


def _from_the_data(split: Split, user: int) -> tuple[list[int], list[int]]:
    """A user's training items and their times, oldest first."""
    assert split.data.timestamp is not None
    items, times = split.data.item[split.data.of(user)], split.data.timestamp[split.data.of(user)]
    out = {*split.validation.answers(user), *split.test.answers(user)}
    found = sorted((int(time), int(item)) for time, item in zip(times, items, strict=True) if int(item) not in out)
    return [item for _, item in found], [time for time, _ in found]


def _assert_in_order(split: Split, seen: Params, place: int, user: int, at_hand: Tensor) -> None:
    items, times = _from_the_data(split, user)
    assert seen["past.mask"][place].tolist() == [float(k < len(items)) for k in range(seen["past.mask"].shape[1])]
    assert at_hand[seen["past.rows"][place][: len(items)]].tolist() == items
    assert seen["past.times"][place][: len(items)].tolist() == times
    assert split.timeline.times is not None
    assert int(seen["past.now"][place]) == max(split.timeline.times.values.tolist()), "the moment of the round"


@pytest.mark.parametrize("dense", [False, True])
def test_in_training_rows_point_into_the_tables_at_hand(dense: bool) -> None:
    split = small_world()
    one = federation(NextItem(), split, dense=dense)
    clients = torch.tensor([5, 0, 17, 1])
    samples = one.work.samples(1, clients)
    seen = one.clients.open(samples, one.server.download(1, clients)).values
    for place, user in enumerate(clients.tolist()):
        _assert_in_order(split, seen, place, user, samples.items[place])
    assert (seen["past.rows"] < samples.num_rows[:, None]).all(), "padding too points at rows that are there"


def test_in_predicting_rows_are_items() -> None:
    split = small_world()
    one = federation(NextItem(), split)
    clients = torch.tensor([3, 22, 0])
    seen, axes = one.predicting(clients, None)
    for place, user in enumerate(clients.tolist()):
        _assert_in_order(split, seen, place, user, torch.arange(split.num_items))
    assert [axes[f"past.{what}"] for what in ("rows", "times", "mask", "now")] == [0, 0, 0, 0]


def _untimed() -> Split:
    """Two users, one of whom has an item twice, and no times."""
    data = Interactions.from_rows("untimed", np.array([0, 0, 0, 0, 0, 1, 1, 1]), np.array([4, 2, 4, 0, 1, 3, 0, 2]))
    train = Ragged.from_pairs(np.array([0, 0, 0, 1]), np.array([4, 2, 4, 3]), 2)
    return split_by_hand(data, train, [0, 0], [1, 2])


def test_without_times_places_are_times_and_a_repeated_item_is_repeated() -> None:
    split = _untimed()
    place = Machine(torch.device("cpu"), torch.float64)
    one = Federation(NextItem(negatives=1), split, split.training_items(), FederationOptions(), 0, place)
    both = torch.arange(2)
    samples = one.work.samples(1, both)
    for seen, at_hand in (
        (one.clients.open(samples, one.server.download(1, both)).values, samples.items),
        (one.predicting(both, None)[0], torch.arange(5).expand(2, -1)),
    ):
        assert at_hand[0][seen["past.rows"][0]].tolist() == [4, 2, 4]
        assert at_hand[1][seen["past.rows"][1][:1]].tolist() == [3]
        assert seen["past.times"].tolist() == [[0, 1, 2]] * 2
        assert seen["past.mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
        assert seen["past.now"].tolist() == [3, 1]


def test_scores_follow_from_the_last_items() -> None:
    split = small_world()
    one = federation(NextItem(local_epochs=2), split)
    for number in (1, 2):
        one.round(number)
    items, users = one.server.shared["items"], one.clients.own["user"]
    clients = torch.arange(split.num_users)
    found = scorer_of(one).scores(clients, None)
    some = torch.randint(split.num_items, (split.num_users, 7), generator=torch.Generator().manual_seed(1))
    for user in range(split.num_users):
        past = _from_the_data(split, user)[0]
        query = users[user] + sum((3 - k) * items[item] for k, item in enumerate(reversed(past)) if k < 3)
        assert torch.allclose(found[user], items @ query, atol=1e-9)
    assert torch.allclose(scorer_of(one).scores(clients, some), found.gather(1, some), atol=1e-12)


def test_engines_blocks_and_full_tables_agree() -> None:
    ends = []
    for how in ({}, {"engine": "loop"}, {"dense": True}, {"block_clients": 3}):
        one = federation(NextItem(batch_size=16, local_epochs=2), small_world(), **how)
        for number in (1, 2):
            one.round(number)
        ends.append({**one.server.shared, **one.clients.own})
    for other in ends[1:]:
        for name, value in ends[0].items():
            assert torch.allclose(value, other[name], atol=1e-9), name


def test_a_timeline_is_neither_sent_nor_kept() -> None:
    one = federation(NextItem(local_epochs=1), small_world())
    one.round(1)
    assert not any("past" in name for name in one.pack())
    clients = torch.arange(4)
    upload = one.work.do(one.work.samples(2, clients), one.server.download(2, clients))
    assert set(upload.rows) | set(upload.whole) == {"items"}


@dataclass(frozen=True)
class SomeRows(NextItem):
    whole_rows: ClassVar[bool] = False


@dataclass(frozen=True)
class MovesTime(NextItem):
    def phases(self, world: World) -> tuple[Phase, ...]:
        return (Phase((Step(("user", "past"), Adam(0.05)),), 1),)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (SomeRows(), "has a timeline, whose rows must be at hand; expected whole_rows=True"),
        (MovesTime(), "moves 'past', the client's history, which is data and no parameter"),
    ],
    ids=["some rows", "moves it"],
)
def test_a_timeline_that_cannot_be_followed_is_refused(method: Method, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        federation(method, small_world())
