"""Histories in time order: the order that chose the held-out items, for every user, whatever the data look like."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.causal_splits import global_time, moment_at
from ownview.data.splitting.split_files import from_files
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.data.timeline import hash_of_pairs
from ownview.evaluation.named_protocols import PROTOCOLS
from ownview.evaluation.protocol import Protocol
from tests.questions import single, split_by_hand

Row = tuple[str, str, int]
Timed = tuple[list[str], list[int] | None]
SEED = 4
TIES = st.sampled_from(["file", "hash"])
UNTIMED = st.sampled_from(["appearance", "random"])
held_out_by = partial(leave_one_out, seed=SEED)


def build(rows: list[Row], timed: bool = True) -> Interactions:
    user, item, time = zip(*rows, strict=True)
    stamps = np.array(time, dtype=np.int64) if timed else None
    return Interactions.from_rows(
        "rows", np.array(user, dtype=object), np.array(item, dtype=object), None, timestamp=stamps
    )


def timelines(split: Split) -> dict[str, Timed]:
    """By user id: the timeline's items as ids, and its times."""
    line = split.timeline
    return {
        str(user): (
            split.data.items[line.items.of(k).numpy()].tolist(),
            None if line.times is None else line.times.of(k).tolist(),
        )
        for k, user in enumerate(split.data.users.tolist())
    }


def held(split: Split, question: Question) -> dict[str, str]:
    """By user id: the held-out item as an id."""
    items = single(question)
    return {str(user): str(split.data.items[items[k]]) for k, user in enumerate(split.data.users.tolist())}


def from_latest(rows: list[Row], user: str, ties: str) -> list[tuple[str, int]]:
    """A user's items and times from the latest to the oldest, by counting who is later than whom."""
    own = [(item, time) for name, item, time in rows if name == user]
    if ties == "file":
        lines = sorted(range(len(own)), key=lambda k: sum(o[1] > own[k][1] for o in own) * len(own) + k)
        return [own[k] for k in lines]
    return sorted(own, key=lambda pair: (-pair[1], -hash_of(user, pair[0])))


def hash_of(user: str, item: str) -> int:
    return int(hash_of_pairs(build([(user, item, 0)]), SEED)[0])


@st.composite
def any_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of a few users, at least three each, with repeats, equal times and times that run backwards."""
    users = [name for name in "abcd" for _ in range(draw(st.integers(3, 7)))]
    item = st.sampled_from(["p", "q", "r", "s", "t", "u", "v"])
    return [(user, draw(item), draw(st.integers(0, 3))) for user in draw(st.permutations(users))]


@settings(max_examples=50)
@given(any_rows(), TIES, UNTIMED, st.booleans())
def test_the_timeline_reorders_training_and_leaves_it_alone(
    rows: list[Row], ties: str, untimed: str, timed: bool
) -> None:
    data = build(rows, timed)
    split = held_out_by(data, ties=ties, untimed=untimed)
    line = split.timeline
    assert torch.equal(line.items.offsets, split.train.offsets)
    assert line.items.values.dtype == torch.int64
    assert (line.times is not None) == timed
    for user in range(data.num_users):
        assert sorted(line.items.of(user).tolist()) == sorted(split.train.of(user).tolist())
        source = iter(data.item[data.of(user)].tolist())
        assert all(item in source for item in split.train.of(user).tolist())  # still a part of the source, in its order


@settings(max_examples=50)
@given(any_rows(), TIES)
def test_the_timeline_is_what_is_left_of_the_order_that_chose_the_held_out_items(rows: list[Row], ties: str) -> None:
    """Sorted by time, ties by the protocol's rule, and the item before the validation item is the timeline's last."""
    split = held_out_by(build(rows), ties=ties, untimed="random")
    test, validation, lines = held(split, split.test), held(split, split.validation), timelines(split)
    for user, (items, times) in lines.items():
        latest_first = from_latest(rows, user, ties)
        assert [test[user], validation[user]] == [item for item, _ in latest_first[:2]]
        assert times is not None
        assert list(zip(items, times, strict=True)) == latest_first[:1:-1]


@settings(max_examples=50)
@given(any_rows(), TIES)
def test_no_training_time_is_after_the_held_out_times(rows: list[Row], ties: str) -> None:
    for user, (_, times) in timelines(held_out_by(build(rows), ties=ties, untimed="random")).items():
        every = sorted(time for name, _, time in rows if name == user)
        assert times == every[:-2]


@settings(max_examples=50)
@given(any_rows(), TIES)
def test_appearance_stands_for_time(rows: list[Row], ties: str) -> None:
    split = held_out_by(build(rows, timed=False), ties=ties, untimed="appearance")
    first = list(dict.fromkeys(item for _, item, _ in rows))
    for user, line in timelines(split).items():
        own = sorted((item for name, item, _ in rows if name == user), key=first.index)
        assert (*line, held(split, split.validation)[user], held(split, split.test)[user]) == (
            own[:-2],
            None,
            *own[-2:],
        )


@settings(max_examples=50)
@given(any_rows(), TIES)
def test_without_times_the_random_order_of_the_held_out_items_goes_on_before_them(rows: list[Row], ties: str) -> None:
    split = held_out_by(build(rows, timed=False), ties=ties, untimed="random")
    for user, line in timelines(split).items():
        own = sorted((item for name, item, _ in rows if name == user), key=lambda item: hash_of(user, item))
        assert (*line, held(split, split.validation)[user], held(split, split.test)[user]) == (
            own[:-2],
            None,
            *own[-2:],
        )


@settings(max_examples=50)
@given(any_rows(), st.data(), st.booleans())
def test_under_hash_ties_the_timeline_does_not_depend_on_file_order(
    rows: list[Row], choice: st.DataObject, timed: bool
) -> None:
    shuffled = choice.draw(st.permutations(rows))
    first, second = (
        timelines(held_out_by(build(order, timed), ties="hash", untimed="random")) for order in (rows, shuffled)
    )
    assert first == second


@settings(max_examples=50)
@given(any_rows(), st.floats(0.4, 0.7))
def test_global_time_tells_the_rows_before_the_first_window(rows: list[Row], share: float) -> None:
    rows = [*rows, *((user, "first", -1) for user in "abcd")]  # so that everybody trains and nobody is dropped
    start = int(np.quantile([row[2] for row in rows], share, method="lower"))
    split = global_time(build(rows), first=start, second=9, ties="hash", seed=SEED)
    once = list({row[:2]: row for row in reversed(rows) if row[2] < start}.values())  # a repeat counts at its first row
    for user, (items, times) in timelines(split).items():
        before = from_latest(once, user, "hash")[::-1]
        assert times is not None
        assert list(zip(items, times, strict=True)) == before


def test_global_time_keeps_times_with_their_users_when_users_are_dropped() -> None:
    rows = [("late", "i9", 9), ("a", "i3", 3), ("b", "i2", 2), ("a", "i1", 1), ("b", "i8", 8), ("a", "i7", 7)]
    data = build(rows)
    first, second = (moment_at(data, share, "time") for share in (0.6, 0.9))
    split = global_time(data, first=first, second=second, ties="hash", seed=0)
    assert timelines(split) == {"a": (["i1", "i3"], [1, 3]), "b": (["i2"], [2])}


def test_by_hand_times_that_run_backwards_and_repeats_with_times_of_their_own() -> None:
    rows = [("a", "p", 9), ("a", "q", 8), ("b", "q", 3), ("a", "p", 7), ("b", "r", 2), ("a", "r", 6), ("a", "p", 5)]
    split = held_out_by(build([*rows, ("b", "p", 1)]), ties="file", untimed="appearance")
    assert timelines(split) == {"a": (["p", "r", "p"], [5, 6, 7]), "b": (["p"], [1])}
    assert split.data.items[split.train.values.numpy()].tolist() == ["p", "r", "p", "p"]


@pytest.mark.parametrize("ties", ["file", "hash"])
def test_all_at_one_time_is_ordered_by_the_ties_rule_alone(ties: str) -> None:
    rows = [("a", item, 5) for item in "pqrst"]
    items, times = timelines(held_out_by(build(rows), ties=ties, untimed="random"))["a"]
    expected = list("tsrqp") if ties == "file" else sorted("pqrst", key=partial(hash_of, "a"))
    assert (items, times) == (expected[:3], [5, 5, 5])


def test_a_split_made_by_hand_has_its_source_order_and_no_times() -> None:
    data = build([("a", "p", 2), ("a", "q", 1), ("b", "q", 3)])
    train = Ragged(torch.tensor([0, 2, 3]), torch.tensor([1, 0, 1]))
    split = split_by_hand(data, train, [0, 0], [1, 1])
    assert timelines(split) == {"a": (["q", "p"], None), "b": (["q"], None)}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_protocol_hands_the_timeline_on(protocol: Protocol) -> None:
    rows = [(f"u{user}", f"i{(user * k) % 11}", 100 - k) for user in range(1, 11) for k in range(1, 12)]
    split = protocol.prepare(build(rows))
    line = split.timeline
    assert line.times is not None
    for user in range(split.num_users):
        assert line.times.of(user).tolist() == sorted(line.times.of(user).tolist())


def write(folder: Path, train: list[str], header: str) -> Path:
    (folder / "train.csv").write_text("\n".join([header, *train]) + "\n", encoding="utf-8")
    (folder / "validation.csv").write_text("user,item\na,s\n", encoding="utf-8")
    (folder / "test.csv").write_text("user,item\nb,s\n", encoding="utf-8")
    return folder


def test_split_files_are_told_by_the_times_of_the_train_file(tmp_path: Path) -> None:
    rows = [("b", "r", 7), ("a", "p", 9), ("b", "p", 4), ("a", "q", 9), ("a", "p", 3), ("b", "q", 4)]
    rows += [("b", item, 4) for item in "tuvw"]  # enough of one time for the two rules to differ
    folder = write(tmp_path, [f"{u},{i},{t}" for u, i, t in rows], "user,item,timestamp")
    data = build([(user, item, 0) for user in "ab" for item in "pqrstuvw"], timed=False)
    assert from_latest(rows, "b", "file") != from_latest(rows, "b", "hash")
    for ties in ("file", "hash"):
        own = Protocol(name="own", split="files", split_folder=str(folder), split_ties=ties, split_seed=SEED)
        found = own.prepare(data)
        lines = {}
        for user, (items, times) in timelines(found).items():
            assert times is not None
            lines[user] = list(zip(items, times, strict=True))
        assert lines == {user: from_latest(rows, user, ties)[::-1] for user in "ab"}
        assert found.data.items[found.train.values.numpy()].tolist() == list("pqprpqtuvw")


def test_split_files_without_times_keep_the_order_of_the_train_file(tmp_path: Path) -> None:
    folder = write(tmp_path, ["b,r", "a,q", "b,p", "a,p"], "user,item")
    data = build([(user, item, time) for time, item in enumerate("pqrs") for user in "ab"])
    split = from_files(folder, data, ties="hash", seed=0)
    assert timelines(split) == {"a": (["q", "p"], None), "b": (["r", "p"], None)}
